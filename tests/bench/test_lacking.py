"""Cells that a GPU cannot run are left out with the reason, and so are cells that use what those would have defined."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from climb import hardware_counters
from climb.bench import lacking, records
from climb.bench.problem import RungUnavailable
from climb.paths import ROOT
from climb.toolchain import CompileError, compile_cuda

OTHER = "nvidia-made-up"


class Notebook:
    """Cells that run one after the other as in a guarded notebook; ``shown`` is what the last expression gave."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.names = {"RungUnavailable": RungUnavailable}
        self.names[lacking._NAME] = lacking.Guard(self.names, self.said.append)

    def run(self, cell: str) -> object:
        tree = lacking.CellsGuarded().visit(ast.parse(cell))
        shown = None
        for node in tree.body:
            if isinstance(node, ast.Expr):
                shown = eval(compile(ast.Expression(node.value), "cell", "eval"), self.names)
            else:
                exec(compile(ast.Module([node], []), "cell", "exec"), self.names)
        return shown


NEEDY = "def needy():\n    raise RungUnavailable('rung x of y: it needs compute capability 9.0')\n"


@pytest.fixture
def notebook() -> Notebook:
    made = Notebook()
    made.run(NEEDY)
    return made


def test_cell_that_runs_is_as_without_a_guard(notebook: Notebook) -> None:
    assert notebook.run("a = 2\ndef twice(x):\n    return 2 * x\ntwice(a)") == 4
    assert notebook.run("twice(a) + 1") == 5
    assert notebook.run("b = a") is None and notebook.said == []


def test_cell_is_left_out_with_the_reason_at_its_end_or_within(notebook: Notebook) -> None:
    assert notebook.run("needy()") is None
    assert notebook.run("x = needy()\nx") is None
    assert notebook.said == ["Left out on this GPU: rung x of y: it needs compute capability 9.0"] * 2


def test_cell_that_uses_names_of_a_left_out_cell_is_left_out_and_others_run(notebook: Notebook) -> None:
    notebook.run("before = 1\nfound = needy()\nafter = 2")
    assert notebook.run("found + 1") is None
    assert notebook.said[1:] == ["Left out on this GPU: it uses found of a cell that was left out"]
    assert notebook.run("1 + 1") == 2


def test_old_value_of_a_name_is_not_used_for_that_of_a_left_out_cell(notebook: Notebook) -> None:
    notebook.run("size = 1")
    notebook.run("size = needy()")
    assert notebook.run("size") is None
    assert notebook.run("size = 3\nsize") == 3
    assert notebook.run("size") == 3


def test_imports_of_a_left_out_cell_and_names_of_comprehensions_stay(notebook: Notebook) -> None:
    notebook.run("size = 7")
    notebook.run("import math\nall_of = [size for size in range(3)]\nneedy()")
    assert notebook.run("math.floor(1.5) + size") == 8


@pytest.mark.parametrize("cell", ["1 / 0", "x = 1 / 0", "never_defined"])
def test_other_errors_stop_the_chapter(notebook: Notebook, cell: str) -> None:
    with pytest.raises((ZeroDivisionError, NameError)):
        notebook.run(cell)
    assert notebook.said == []


def test_reason_of_the_compiler_names_the_newest_target_that_it_asks_for() -> None:
    source = r"""
extern "C" __global__ void product(float* c, const unsigned* a)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
    asm volatile("barrier.cluster.arrive;");
}
"""
    with pytest.raises(CompileError) as caught:
        compile_cuda(source, filename="product.cu", arch="sm_75", whole=True)
    assert "requires .target sm_90 or higher" in lacking.why(caught.value)
    with pytest.raises(CompileError) as mistake:
        compile_cuda("__global__ void k() { x = 1; }", filename="k.cu", arch="sm_75", whole=True)
    assert lacking.why(mistake.value) == "" == lacking.why(ValueError("Feature 'x' requires .target sm_90 or higher"))


def test_cell_is_left_out_if_another_gpus_records_lack_what_it_asks_for(notebook: Notebook, monkeypatch) -> None:
    notebook.names["hardware"] = hardware_counters("transpose")
    cell = "x = hardware.at('vectorised', {'rows': 3, 'cols': 5})"
    with pytest.raises(records.PendingRung, match="no hardware counters of vectorised at rows=3, cols=5"):
        notebook.run(cell)
    monkeypatch.setattr(records, "DEFAULT_GPU", OTHER)
    notebook.run(cell)
    assert "Left out on this GPU: no hardware counters of vectorised" in notebook.said[0]
    with pytest.raises(LookupError):
        notebook.run("{}['x']")


@pytest.mark.thorough
@pytest.mark.emulated
def test_chapter_on_an_older_gpu_goes_on(tmp_path) -> None:
    """In a real notebook, whose stand-in for CuPy says that it is a Turing."""
    older = "from climb.fake_cupy.device import Device\nDevice.compute_capability = '75'"
    first = f"{older}\nfrom climb import announce, cp, load_ladder\nannounce()"
    second = "product = load_ladder('tgemm')['promoted'](*(cp.ones((64, 64), dtype='float32') for _ in range(2)))"
    cells = [first, second, "product.sum()", "float(cp.ones(3).sum())"]
    nodes = [{"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": s} for s in cells]
    path = tmp_path / "older.ipynb"
    path.write_text(json.dumps({"cells": nodes, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--stdout", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "WORKLOG_TIMINGS": "record", "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    outputs = [cell["outputs"] for cell in json.loads(done.stdout)["cells"]]
    said = ["".join("".join(o.get("text") or o["data"]["text/plain"]) for o in cell) for cell in outputs]
    assert "it needs compute capability 9.0, and this GPU has 7.5" in said[1]
    assert said[2] == "Left out on this GPU: it uses product of a cell that was left out\n" and said[3].startswith(
        "3.0"
    )


@pytest.mark.parametrize(
    ("capability", "shown", "guarded"),
    [("75", records.BOOK_GPU, 1), (lacking.BOOK_CAPABILITY, records.BOOK_GPU, 0), (lacking.BOOK_CAPABILITY, OTHER, 1)],
)
def test_cells_of_a_notebook_are_guarded_once_where_the_gpu_is_another(monkeypatch, capability, shown, guarded):
    monkeypatch.setattr(records, "DEFAULT_GPU", shown)
    shell = SimpleNamespace(ast_transformers=[], user_ns={})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(lacking.cuda.cp.cuda, "Device", lambda: SimpleNamespace(compute_capability=capability))
    lacking.guard_cells_in_notebook()
    lacking.guard_cells_in_notebook()
    assert [type(one) for one in shell.ast_transformers] == [lacking.CellsGuarded] * guarded
    assert len(shell.user_ns) == guarded
