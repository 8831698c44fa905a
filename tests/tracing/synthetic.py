"""Made-up traces: enough of them, fast, for tests and benchmarks of what reads the store."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from verilog_taskapp.tracing.database import TraceDatabase
from verilog_taskapp.tracing.record import TraceFacts, TraceRecord, TraceStatus
from verilog_taskapp.tracing.rows import parcel
from verilog_taskapp.tracing.session_trace import session_trace

START = datetime(2026, 1, 1, tzinfo=UTC)
MODELS = ("scripted", "qwen/qwen3-32b", "openai/gpt-oss-20b", "meta/llama-4")
PROBLEMS = 156
"""As many as VerilogEval has."""
GROUP = 8
"""Samples of one problem that follow each other."""
_DESIGN = "module TopModule (input a, input b, output y);\n  assign y = a & b;\nendmodule\n"


def synthetic_records(number: int, *, runs: int = 20, seed: int = 0, steps: int = 3) -> Iterator[TraceRecord]:
    """Rollouts in groups of `GROUP`, one a second; a third passes, a few failed, the same for the same `seed`."""
    chance = random.Random(seed)  # noqa: S311 - reproducible
    for index in range(number):
        created = START + timedelta(seconds=index)
        group = index // GROUP
        draw = chance.random()
        status: TraceStatus = "completed" if draw < 0.8 else "truncated" if draw < 0.97 else "failed"
        passed = None if status == "failed" else status == "completed" and chance.random() < 0.4
        total = None if passed is None else round(11.1 * passed - 0.01 * chance.randint(1, 10), 6)
        outcome = {"completed": "passed" if passed else "wrong", "truncated": "max_steps"}.get(
            status, "inference_failed"
        )
        facts = TraceFacts(
            id=f"{int(created.timestamp() * 1000):012x}7{chance.getrandbits(12):03x}8{chance.getrandbits(60):015x}",
            kind="rollout",
            run_id=f"run-{index * runs // max(number, 1):03d}",
            created_at=created,
            finished_at=created + timedelta(seconds=chance.uniform(0.5, 20)),
            status=status,
            outcome=outcome,
            passed=passed,
            episode_return=total,
            dataset="synthetic",
            dataset_version="1",
            problem_id=f"Prob{group % PROBLEMS:03d}",
            problem_hash=f"{group % PROBLEMS:064x}",
            split=("train", "val", "test")[group % 3],
            seed=group,
            model=MODELS[group % len(MODELS)],
            steps=chance.randint(1, 10),
            model_s=chance.uniform(0.4, 15),
            tool_s=chance.uniform(0.01, 0.5),
            prompt_tokens=chance.randint(500, 9000),
            completion_tokens=chance.randint(50, 3000),
            error_code="inference_failed" if status == "failed" else None,
            error_stage="inference" if status == "failed" else None,
            error_message="the model server kept failing" if status == "failed" else None,
            service_version="0",
            judge_version="1",
            simulator_version="icarus 11.0",
        )
        yield TraceRecord(facts, {"feedback": "hints"}, synthetic_document(facts, steps))


def synthetic_document(facts: TraceFacts, steps: int) -> dict[str, Any]:
    """A conversation of `steps` turns."""
    told: list[dict[str, Any]] = [
        {"role": "system", "content": "Write Verilog."},
        {"role": "user", "content": "An and."},
    ]
    played = []
    for number in range(steps):
        text = f'{{"tool": "write_file", "args": {{"path": "TopModule.v"}}}} // {facts.id} {number}'
        told += [{"role": "assistant", "content": text}, {"role": "user", "content": "ok"}]
        played.append(
            {
                "obs": {"files": {"TopModule.v": _DESIGN}, "compile_status": "", "simulate_status": ""},
                "tool_calls": [{"tool_name": "write_file", "arguments": {"path": "TopModule.v", "content": _DESIGN}}],
                "reward": -0.01,
                "done": number == steps - 1,
                "info": {
                    "assistant_message": text,
                    "model_response": {"model": facts.model, "usage": {"prompt_tokens": 9, "completion_tokens": 5}},
                    "inference_ms": 12.5,
                    "tool_result": "wrote TopModule.v",
                    "outcome": "ok",
                    "reward_components": {"step_penalty": -0.01},
                    "facts": {},
                },
            }
        )
    metadata = {"run_id": facts.run_id, "status": facts.status, "total_reward": facts.episode_return}
    return session_trace(facts.id, facts.created_at.isoformat(), metadata, played, told, full=True)


async def fill(database: TraceDatabase, number: int, *, batch: int = 1000, **options: int) -> None:
    """Write synthetic traces straight into an open database: 100,000 take about half a minute."""
    parcels = []
    for record in synthetic_records(number, **options):
        parcels.append(parcel(record))
        if len(parcels) == batch:
            await database.write(parcels)
            parcels = []
    if parcels:
        await database.write(parcels)
