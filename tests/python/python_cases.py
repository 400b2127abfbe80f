"""The cases of all public functions of vkml.nn.functional, vkml.linalg and vkml.special."""

from functional_cases import FUNCTIONAL_CASES
from linalg_cases import LINALG_CASES
from special_cases import SPECIAL_CASES

PYTHON_CASES = [*FUNCTIONAL_CASES, *LINALG_CASES, *SPECIAL_CASES]
SPACES = tuple(dict.fromkeys(case.space for case in PYTHON_CASES))
