"""The summary of a run for the page of a CI job."""

from markdown_it import MarkdownIt

from duckflow.ui.job_summary import code, failed_start, inert, plain
from fakes.rows import every_row


def active(markdown: str) -> list[str]:
    blocks = MarkdownIt("commonmark").parse(markdown.replace("@<!-- -->", "@"))
    tokens = [token for block in blocks for token in (block, *(block.children or ()))]
    return [token.type for token in tokens if token.type in ("html_block", "html_inline", "image")]


@every_row(
    "hostile",
    [
        "<img src=x>",
        "![a](https://evil.example/?k=1)",
        "text <script>alert(1)</script>",
        "`a\nb` <img src=x> `c`",
        "\\`<img src=x>\\`",
        "1. x\n   ```\n<img src=x>\n",
        " ```\nx\n```\n<img src=x>\n",
        "``` `a\n<img src=x>\n```",
        "~~~\nx\n```\n~~~\n<img src=x>",
    ],
)
def test_M3_nothing_in_a_reply_acts_on_the_page_that_shows_it(hostile: str):
    assert active(hostile)
    assert active(inert(hostile)) == []


def test_M3_ordinary_markdown_stays_as_it_is():
    written = "# Title\n\n- `a<b>` and **bold**\n\n```py\nif a < b: x = a @ b\n```\n\n| a |\n|---|\n| 1 |"
    assert inert(written) == written
    assert inert("thanks @someone") == "thanks @<!-- -->someone"
    assert inert("```\nopen").endswith("```")


def test_M3_cells_of_a_table_stay_cells():
    assert plain("a | b\n`c` <d>") == "a \\| b \\`c\\` \\<d\\>"
    assert code("a | `b`") == "`a \\| 'b'`"
    assert failed_start("no *key*").endswith("no \\*key\\*\n")
