"""``report.html``: whole, readable, and safe whatever it shows."""

from html.parser import HTMLParser

from tests.evaluation.builders import sample, saved
from verilog_taskapp.evaluation.config import JudgeName
from verilog_taskapp.evaluation.report import as_html
from verilog_taskapp.evaluation.samples import Failure, Judgement
from verilog_taskapp.evaluation.summary import summarize

HOSTILE = "</title><script>alert(1)</script><img src=x onerror='alert(2)'>\"&\u202e\x1b[31m"
VOID = {"meta"}


class Page(HTMLParser):
    """Elements, attributes and whether everything that was opened was closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def judged(golden: bool, classic: bool) -> dict[JudgeName, Judgement]:
    return {
        "golden": Judgement(passed=golden, reason=HOSTILE, category="R"),
        "classic": Judgement(passed=classic, reason=HOSTILE, category=HOSTILE),
    }


def test_nothing_that_a_model_a_problem_or_a_server_says_becomes_markup() -> None:
    problems = (HOSTILE, "p2", "p3")
    config = saved(problems, n=1, judge="both")
    models = {"models": [{"name": HOSTILE, "label": None}]}
    config = config.model_copy(update={"what": {**config.what, "policy": models}, "versions": {HOSTILE: HOSTILE}})
    samples = [
        sample(
            HOSTILE, model=HOSTILE, passed=False, category=HOSTILE, difficulty=HOSTILE, judgements=judged(False, True)
        ),
        sample("p2", model=HOSTILE, difficulty="easy", steps=3, judgements=judged(True, True)),
        sample("p3", model=HOSTILE, passed=None, error=Failure(code=HOSTILE, message=HOSTILE)),
    ]
    text = as_html(config, summarize(config, samples))
    page = Page(text)
    assert page.open == []
    assert not {"script", "img", "link", "iframe"} & set(page.tags)
    assert not {name for name in page.attributes if name.startswith("on") or name in ("src", "href")}
    assert text.count("&lt;script&gt;") > 5


def test_the_page_needs_nothing_from_outside_and_follows_light_and_dark() -> None:
    config = saved(("p1", "p2"), n=2, k=(1, 2))
    samples = [sample("p1"), sample("p1", 1, passed=False), sample("p2", steps=4), sample("p2", 1, steps=6)]
    text = as_html(config, summarize(config, samples))
    assert "prefers-color-scheme: dark" in text
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    assert "default-src &#x27;none&#x27;" in text
    page = Page(text)
    assert page.open == []
    assert page.tags.count("svg") == 4  # pass@k, problems, categories, steps
    assert "75.0% [50.0%, 100.0%]" in text


def test_several_models_are_told_apart_by_a_legend() -> None:
    config = saved()
    models = {"models": [{"name": name, "label": None} for name in ("first", "<second>")]}
    config = config.model_copy(update={"what": {**config.what, "policy": models}})
    samples = [sample(model="first"), sample(model="<second>", passed=False)]
    text = as_html(config, summarize(config, samples))
    assert "<span class=k1>●</span> &lt;second&gt;" in text
    assert Page(text).open == []


def test_a_report_of_nothing_says_what_is_missing() -> None:
    config = saved(("p1", "p2"))
    text = as_html(config, summarize(config, []))
    assert "2 of 2 samples are still missing" in text
    assert Page(text).open == []
