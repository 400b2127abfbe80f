"""Pictures of graphs: what was recorded, what is computed, and how the rest would be.

::

    picture = vkml.graph.draw(loss)
    print(picture.dot)         # Graphviz's language
    picture.save("loss.svg")   # drawn here, without Graphviz

In a notebook a drawing shows itself.
"""

from vkml.graph.drawing import Drawing, draw

__all__ = ["Drawing", "draw"]
