"""`plan` tells the whole recipe of a run, as text and as a flowchart."""

from __future__ import annotations

from tests.kit.commands import Tally
from tests.kit.workspaces import Books


def test_the_plan_tells_the_whole_recipe(books: Books, tally: Tally) -> None:
    books.edit("close.yaml", "  operations:", "  selectors: {nothing: amount = 0, unused: amount > 9}\n  operations:")
    books.edit("close.yaml", "selector: amount = 0", "selector: '{{nothing}} OR amount IS NULL'")
    planned = tally(books, "plan", "close", "--period", "2026-01")
    assert planned.code == 0
    assert "\nconditions\n  {{nothing}}: amount = 0\n\n10. update: Net\n" in planned.out
    assert "   join        tiers v1, table tiers, as t\n     on        sales.region = t.region\n" in planned.out
    assert "20. delete: Drop\n   rows        {{nothing}} OR amount IS NULL\n   delete      these rows" in planned.out
    assert "   write       delta .tallybook/sandbox/close/2026-01/30-ledger (overwrite)\n" in planned.out
    assert (
        "   columns     id, tier, net, _period\n   leave out   region, amount\n   register    as dataset ledger\n"
        in planned.out
    )
    assert "40. aggregate: Totals\n   rows        all that are not deleted\n   group by    region\n" in planned.out


def test_the_plan_as_a_flowchart(books: Books, tally: Tally) -> None:
    books.edit("close.yaml", "name: Drop", "name: 'Drop \"[zero]\"; it''s <nothing>'")
    drawn = tally(books, "plan", "close", "--period", "2026-01", "--mermaid").out.splitlines()
    assert drawn[:10] == [
        "flowchart TD",
        '  start[("sales v1")]',
        '  t1[("tiers v1, table tiers")]',
        '  o10["10. update<br>Net"]',
        "  start --> o10",
        '  t1 -. "t" .-> o10',
        '  o20["20. delete<br>Drop #34;#91;zero#93;#34;#59; it#39;s #60;nothing#62;"]',
        "  o10 --> o20",
        '  o30["30. output<br>Ledger"]',
        "  o20 --> o30",
    ]
    assert '  o30 --> w30[("delta 30-ledger")]' in drawn
    assert "  o20 --> o40" in drawn, "an output changes nothing, so the rows flow past it"
