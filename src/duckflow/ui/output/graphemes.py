"""Characters on whose width terminals disagree are drawn in a form on which they agree.

A family of emoji is two columns wide for one terminal and six for another, and the cursor of the line editor
stands wrong in one of them. So in the input line joined emoji are drawn side by side, and skin tones and the
marks that ask for a colourful form are left out. Only the drawing differs: the text stays as it was typed.
"""

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

_JOINER = "\u200d"


def undrawn(character: str) -> bool:
    """Whether a character is left out of the drawing."""
    return (
        character == _JOINER or "\ufe00" <= character <= "\ufe0f" or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


class AgreedWidths(Processor):
    """Leaves out of the drawing what terminals measure differently, and keeps the cursor where it belongs."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """The line without such characters, and where each position went."""
        fragments = transformation_input.fragments
        if not any(undrawn(character) for _, text, *_ in fragments for character in text):
            return Transformation(fragments)
        drawn: StyleAndTextTuples = []
        places: list[int] = []
        for fragment in explode_text_fragments(fragments):
            places.append(len(drawn))
            if not undrawn(fragment[1]):
                drawn.append(fragment)
        places.append(len(drawn))
        last = len(places) - 1

        def to_display(source: int) -> int:
            return places[source] if source <= last else places[last] + source - last

        def to_source(display: int) -> int:
            return next((source for source in range(last + 1) if places[source] >= display), last)

        return Transformation(drawn, to_display, to_source)
