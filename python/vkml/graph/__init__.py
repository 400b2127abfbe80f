"""Pictures of graphs: what was recorded, what is computed, and how the rest would be.

::

    picture = vkml.graph.draw(loss)
    print(picture.dot)         # Graphviz's language
    picture.save("loss.svg")   # drawn here, without Graphviz

In a notebook a drawing shows itself.
"""

from vkml.argument_errors import check_arguments as _check_arguments
from vkml.graph.drawing import Drawing, draw

__all__ = ["Drawing", "draw"]

_check_arguments(globals(), __all__)
