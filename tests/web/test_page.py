"""The page in a real browser: type, filter, brush, page, look at a row, make a mistake, give up."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest

import indextables as it
from indextables.report import facts_of, render_report
from support.served import OPTIONS, SCHEMA, TOKEN, chromium, events, make_events, serving

NASTY = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> timeout \x1b[31m"
)


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    root = tmp_path_factory.mktemp("page")
    make_events(root / "events")
    nasty = it.Table.create(root / "nasty", SCHEMA, options=OPTIONS)
    nasty.append(events(0, 1).set_column(4, "message", [[NASTY]]).set_column(1, "level", [["</td><b>x</b>"]]))
    with serving(str(root / "events"), str(root / "nasty")) as made:
        yield made


@pytest.fixture
def page(browser, address):
    context = browser.new_context(viewport={"width": 1280, "height": 860}, color_scheme="light")
    made = context.new_page()
    made.set_default_timeout(20_000)
    wrong = []
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on(
        "console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None
    )
    made.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith(address) else None)
    opened(made, address)
    yield made
    context.close()
    assert wrong == []


def opened(page, address, **params):
    query = "&".join(f"{key}={value}" for key, value in params.items())
    page.goto(f"{address}/?token={TOKEN}&{query}")
    settled(page)


def settled(page):
    page.wait_for_selector("#rows[aria-busy=false]")
    page.wait_for_selector(".loading", state="detached")


def search(page, text):
    page.fill("#query", text)
    page.keyboard.press("Enter")
    settled(page)


def summary(page):
    return page.inner_text("#summary")


def state(page):
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).query).items()}


def test_a_search_shows_its_rows_counts_and_time(page):
    search(page, "timeout")
    assert "432 rows" in summary(page)
    assert page.locator("#rows tbody tr").count() == 50
    assert "n4310" in page.locator("#rows tbody tr").first.inner_text()
    assert "432 rows by ts" in page.inner_text("#chart-caption")
    assert page.title() == "timeout - events - IndexTables"
    assert page.locator("#rows mark").count() == 50
    assert page.locator("#rows mark").first.inner_text() == "timeout"


def test_how_an_answer_was_found_is_told_with_its_time_and_bytes(page):
    search(page, "upstream AND n4310")
    page.locator("#how summary").click()
    told = dict(
        zip(page.locator("#how dt").all_inner_texts(), page.locator("#how dd").all_inner_texts(), strict=True)
    )
    assert told["Files in the table"] == "3"
    assert told["Time"].endswith(" ms")
    assert re.fullmatch(r"[\d,.]+ (B|KiB)|nothing: it was still in memory", told["Read from files"])


def test_a_click_on_a_count_filters_and_the_address_keeps_it(page, address):
    page.locator(".facet[data-column=level] .value .name", has_text="ERROR").click()
    settled(page)
    assert "1,440 rows" in summary(page)
    assert json.loads(state(page)["filters"]) == [{"column": "level", "values": ["ERROR"]}]
    page.locator(".facet[data-column=status] .value", has_text="500").locator(".not").click()
    settled(page)
    assert "1,296 rows" in summary(page)
    link = page.url
    page.locator(".chip", has_text="level").locator("button").click()
    settled(page)
    assert "3,888 rows" in summary(page)
    page.goto(link)
    settled(page)
    assert "1,296 rows" in summary(page)
    page.go_back()
    settled(page)
    assert "3,888 rows" in summary(page)


def test_a_brush_over_the_histogram_narrows_the_time(page):
    box = page.locator("#bars").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.34, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40, steps=4)
    page.mouse.up()
    settled(page)
    asked = state(page)
    assert asked["from"].startswith("2024-05-02T00:00:00")
    assert asked["to"].startswith("2024-05-02T1")
    hours = int(asked["to"][11:13])
    assert f"{60 * hours} rows" in summary(page).replace(",", "")
    page.click("#range-clear")
    settled(page)
    assert "4,320 rows" in summary(page)


def test_the_histogram_is_used_with_the_keyboard_too(page):
    page.focus("#bars")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert "120 rows" in page.inner_text("#chart-now")
    page.keyboard.press("Enter")
    settled(page)
    assert "120 rows" in summary(page)


def test_pages_turn_and_columns_sort(page):
    search(page, "timeout")
    page.click("text=Next")
    settled(page)
    assert "showing 51 to 100" in summary(page)
    page.click("th button:has-text('took')")
    settled(page)
    assert state(page) | {"q": ""} == {"table": "events", "q": "", "sort": "took", "order": "desc"}
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("took")
    page.click("th button:has-text('took')")
    settled(page)
    assert "n0" in page.locator("#rows tbody tr").first.inner_text()


def test_a_mistake_is_shown_where_it_was_made(page):
    search(page, "message:timeout AND (")
    assert page.is_visible("#notes")
    assert page.locator("#notes").get_attribute("role") == "status"
    assert "query" in page.inner_text("#notes")
    search(page, "timeout")
    assert not page.is_visible("#notes")
    page.click("#sql summary")
    page.fill("#where", "status >")
    page.click("#sql button")
    settled(page)
    assert page.locator("#problem").get_attribute("role") == "alert"
    assert "not valid SQL" in page.inner_text("#problem")


def test_a_row_is_seen_in_full_and_filters_from_there(page):
    page.click("#choose summary")
    page.uncheck("#column-list input[value=took]")
    settled(page)
    assert page.locator("th", has_text="took").count() == 0
    page.keyboard.press("Escape")
    page.locator("#rows tbody tr").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#row[open]")
    assert "took" in page.inner_text("#row")
    assert "n4318" in page.inner_text("#row")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("#row:has-text('n4317')")
    page.click("#row [aria-label='Only rows with this value: status']")
    settled(page)
    assert "3,888 rows" in summary(page)


def test_values_with_html_stay_text(page, address):
    opened(page, address, table="nasty", q="timeout")
    assert NASTY.replace("\x1b", "") in page.inner_text("#rows tbody tr").replace("\x1b", "")
    assert page.locator("#rows img, #rows b, #facets b, main script").count() == 0
    page.locator("#rows tbody tr").first.click()
    page.wait_for_selector("#row[open]")
    assert page.locator("#row img").count() == 0
    page.keyboard.press("Escape")
    page.locator(".facet[data-column=level] .name").click()
    settled(page)
    assert "</td><b>x</b>" in page.inner_text("#chips")
    opened(page, address, table="nasty", q="%3Cimg%20src=x%20onerror=alert(1)%3E")
    assert page.title() != "owned"


def test_a_search_is_given_up_by_its_reader(page, address):
    page.route("**/rows?*", lambda route: None)  # answered never: the reader gives up first
    page.fill("#query", "served")
    with page.expect_request("**/rows?*"):
        page.keyboard.press("Enter")
    page.wait_for_selector("#go.busy")
    assert page.inner_text("#go") == "Cancel"
    page.click("#go")
    page.wait_for_selector("#go:not(.busy)")
    assert "Cancelled" in summary(page)
    page.unroute("**/rows?*")
    search(page, "timeout")
    assert "432 rows" in summary(page)


def test_files_versions_and_facts_have_their_tabs(page):
    page.click("#tabs >> text=Versions")
    page.wait_for_selector("#view-versions table")
    page.click("#view-versions a >> text='1'")
    page.wait_for_load_state()
    settled(page)
    assert "as of version 1" in page.inner_text("#version")
    assert "1,440 rows" in summary(page)
    page.click("#tabs >> text=Files")
    page.wait_for_selector("#view-files table")
    assert "1 file," in page.inner_text("#view-files h2")
    page.click("#tabs >> text=About")
    page.wait_for_selector("#view-about .tile")
    assert "1,440" in page.inner_text("#view-about")
    assert "[object" not in page.inner_text("main")
    assert page.locator("#view-about .meter").count() > 0


def test_rows_that_come_in_are_shown_live(browser, tmp_path):
    table = make_events(tmp_path / "events", days=1)
    with serving(str(tmp_path / "events")) as address:
        page = browser.new_page()
        opened(page, address, q="timeout")
        page.click("#tail")
        page.wait_for_selector("#tail[aria-pressed=true]")
        page.wait_for_timeout(300)
        table.append(events(1440, 5))
        page.wait_for_selector("#rows tr.fresh", timeout=20_000)
        assert "n1440" in page.locator("#rows tbody tr").first.inner_text()
        page.close()


def test_every_view_fits_a_phone_in_the_dark(browser, address):
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page = context.new_page()
    opened(page, address, q="timeout")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    for tab in ("search", "files", "versions", "about"):
        page.click(f"#tabs [data-tab={tab}]")
        page.wait_for_selector(f"#view-{tab} table, #view-{tab} .tile")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_the_report_of_a_table_shows_everything_on_a_phone(browser, tmp_path):
    table = make_events(tmp_path / "events", days=1)
    (tmp_path / "report.html").write_text(render_report(facts_of(table)))
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page = context.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    right = "(node) => node.getBoundingClientRect().right"
    shown = page.locator(".card, .bar .track, .times td, pre")
    assert shown.count() > 8
    assert max(node.evaluate(right) for node in shown.all()) <= 390
    tops = [card.bounding_box()["y"] for card in page.locator(".card").all()]
    assert tops[0] == tops[1] < tops[2] == tops[3]
    context.close()


CONTROLS = "button link searchbox textbox combobox checkbox DateTime DisclosureTriangle application figure table".split()


def test_a_screen_reader_hears_a_name_for_every_control_and_how_many_rows_were_found(page):
    search(page, "timeout")
    page.click("#choose summary")
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    heard = [
        (node["role"]["value"], node.get("name", {}).get("value", "").strip())
        for node in tree
        if not node.get("ignored")
    ]
    assert {"button", "searchbox", "combobox", "checkbox", "table", "application"} <= {
        role for role, _ in heard
    }
    assert [role for role, name in heard if role in CONTROLS and not name] == []
    assert ("button", "level ERROR, 144 rows") in heard
    assert any(role == "cell" and "n4310" in name for role, name in heard)
    assert page.get_attribute("#summary", "aria-live") == "polite"
    assert page.locator("[role=status]", has_text="432 rows").count() == 1


def test_the_keyboard_is_enough_and_shows_where_it_is(page):
    def at():
        return page.evaluate(
            """() => {
                const node = document.activeElement, box = node.closest(".box");
                const style = getComputedStyle(node);
                const framed = box && getComputedStyle(box).borderColor !== getComputedStyle(document.querySelector(".card")).borderColor;
                return [node.id || node.textContent.trim().slice(0, 20), style.outlineStyle !== "none" || Boolean(framed)];
            }"""
        )

    page.keyboard.press("Tab")
    assert at() == ["Skip to the results", True]
    page.keyboard.press("/")
    assert at() == ["query", True]
    page.keyboard.type("timeout")
    page.keyboard.press("Enter")
    settled(page)
    assert "432 rows" in summary(page)
    for _ in range(3):
        page.keyboard.press("Tab")
        assert at()[1]
    page.locator("#download summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("#download[open]").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("#download[open]").count() == 0
    assert at() == ["Download", True]
    page.locator("#rows tbody tr").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#row[open]")
    assert "Row 2" in page.inner_text("#row h2")
    page.keyboard.press("Escape")
    assert page.locator("#row[open]").count() == 0


@pytest.mark.slow
def test_millions_of_rows_are_searched_while_one_waits(browser, tmp_path):
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("level", pa.string()), ("message", pa.string())])
    table = it.Table.create(tmp_path / "many", schema, options=OPTIONS)
    size, parts = 500_000, 4
    for part in range(parts):
        numbers = pa.array(range(part * size, (part + 1) * size), pa.int64())
        text = pa.compute.binary_join_element_wise("event", numbers.cast(pa.string()), " ")
        when = pa.compute.add(pa.compute.multiply(numbers, 1_000_000), 1_714_521_600_000_000).cast(
            schema.field("ts").type
        )
        table.append(pa.table({"ts": when, "level": pa.repeat("INFO", size), "message": text}, schema))
    with serving(str(tmp_path / "many")) as address:
        page = browser.new_page()
        page.set_default_timeout(60_000)
        opened(page, address)
        assert "2,000,000 rows" in summary(page)
        search(page, "1234567")
        assert page.locator("#rows tbody tr").count() == 1
        page.close()
