"""``POST /rollout`` with the real simulator and a scripted model: labels, numbers, and what is told to whom."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.conftest import Serve
from tests.support import MODEL_URL, Service, call, call_text, completion, saying, turn_of
from verilog_taskapp.contracts import RolloutResponse
from verilog_taskapp.scripted import mixed_is_correct
from verilog_taskapp.scripted.designs import designs_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

SPEC_TO_RTL = Path(__file__).parents[3] / "shared" / "verilog-eval" / "dataset_spec-to-rtl"
SEEDS = 20

PAID = {"compile": 0.1, "simulate": 1.0, "submit": 10.0, "write_file": 0.0}


def steps_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = answer["trajectories"][0]["steps"]
    return steps


def tools_of(answer: dict[str, Any]) -> list[str | None]:
    return [step["tool_calls"][0]["tool_name"] if step["tool_calls"] else None for step in steps_of(answer)]


def details_of(answer: dict[str, Any]) -> dict[str, Any]:
    details: dict[str, Any] = answer["metrics"]["details"]
    return details


def check_numbers(answer: dict[str, Any]) -> float:
    """Every number of a return is the same; it is returned."""
    RolloutResponse.model_validate(answer)
    metrics, (trajectory,) = answer["metrics"], answer["trajectories"]
    total: float = sum(step["reward"] for step in trajectory["steps"])
    same = [
        metrics["mean_return"],
        metrics["episode_returns"][0],
        metrics["outcome_score"],
        metrics["details"]["total_reward"],
        trajectory["final"]["reward"],
        trajectory["final"]["info"]["total_reward"],
        trajectory["final"]["observation"]["total_reward"],
    ]
    assert same == pytest.approx([total] * len(same), abs=1e-9)
    for step in trajectory["steps"]:
        assert sum(step["info"]["reward_components"].values()) == pytest.approx(step["reward"], abs=1e-9)
    counts = {len(trajectory["steps"]), trajectory["length"], metrics["num_steps"], metrics["details"]["steps"]}
    assert len(counts) == 1
    assert [step["done"] for step in trajectory["steps"]][:-1] == [False] * (metrics["num_steps"] - 1)
    assert (answer["branches"], answer["aborted"], metrics["num_episodes"]) == ({}, False, 1)
    return total


async def run_all(service: Service, seeds: range, **given: Any) -> dict[int, dict[str, Any]]:
    answers = await asyncio.gather(*(service.rollout(seed=seed, **given) for seed in seeds))
    return dict(zip(seeds, answers, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["bundled", "verilog-eval"])
async def test_a_model_that_knows_every_answer_completes_every_task(serve: Serve, dataset: str) -> None:
    if dataset == "verilog-eval":
        if not SPEC_TO_RTL.is_dir():
            pytest.skip(f"no {SPEC_TO_RTL}: a checkout of VerilogEval's spec-to-rtl problems")
        dataset = f"dir:{SPEC_TO_RTL}"
    async with serve(dataset=dataset) as service:
        answers = await run_all(service, range(SEEDS), env={"split": "all"})
    for answer in answers.values():
        total = check_numbers(answer)
        assert total == pytest.approx(0.1 + 1.0 + 10.0 - 0.01 * len(steps_of(answer)), abs=1e-9)
        assert tools_of(answer) == ["write_file", "compile", "simulate", "submit"]
        details = details_of(answer)
        assert (details["task_completed"], details["status"], details["stop_reason"]) == (True, "completed", None)
        assert (details["outcome_rubric"], answer["metrics"]["events_score"]) == (1.0, 1.0)
        assert answer["trajectories"][0]["final"]["info"]["task_completed"] is True
        assert answer["trajectories"][0]["final"]["done"] is True
        assert answer["ops_executed"] == 4
    assert len({details_of(answer)["problem"] for answer in answers.values()}) == SEEDS


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["bundled", "verilog-eval"])
async def test_a_model_that_knows_half_of_the_answers_gets_the_right_labels(serve: Serve, dataset: str) -> None:
    if dataset == "verilog-eval":
        if not SPEC_TO_RTL.is_dir():
            pytest.skip(f"no {SPEC_TO_RTL}: a checkout of VerilogEval's spec-to-rtl problems")
        dataset = f"dir:{SPEC_TO_RTL}"
    async with serve(dataset=dataset, model={"mode": "mixed"}) as service:
        answers = await run_all(service, range(SEEDS), env={"split": "all"})
    labels = {details_of(answer)["problem"]: details_of(answer)["task_completed"] for answer in answers.values()}
    assert labels == {problem: mixed_is_correct(problem) for problem in labels}
    assert set(labels.values()) == {True, False}
    for answer in answers.values():
        right = details_of(answer)["task_completed"]
        assert check_numbers(answer) == pytest.approx(11.06 if right else 0.06, abs=1e-9)
        assert details_of(answer)["outcome_rubric"] == float(right)
        assert details_of(answer)["status"] == "completed", (
            "a wrong submission is an episode that was played to its end"
        )


async def test_a_group_on_one_seed_is_labelled_one_by_one(service: Service) -> None:
    right = [number % 2 == 0 for number in range(8)]
    answers = await asyncio.gather(
        *(service.rollout(seed=5, model=f"scripted:mode={'correct' if good else 'wrong'}") for good in right)
    )
    assert [details_of(answer)["task_completed"] for answer in answers] == right
    assert [check_numbers(answer) > 10 for answer in answers] == right
    assert len({details_of(answer)["problem"] for answer in answers}) == 1
    assert len({details_of(answer)["trace_id"] for answer in answers}) == 8


async def test_the_requests_of_all_steps_together_are_the_whole_conversation(service: Service) -> None:
    answer = await service.rollout(model="scripted:episode=compile_loop")
    steps, bodies = steps_of(answer), service.model.bodies
    assert len(steps) == len(bodies) >= 8
    told: list[Any] = []
    for step, body in zip(steps, bodies, strict=True):
        request = step["info"]["llm_request"]
        assert request["earlier_messages"] == len(told)
        assert len(request["messages"]) == 2
        told += request["messages"]
        assert told == body["messages"], "what the model server was really sent"
        assert {name: value for name, value in request.items() if name not in ("messages", "earlier_messages")} == {
            name: value for name, value in body.items() if name != "messages"
        }
        assert step["info"]["assistant_message"] == step["info"]["model_response"]["choices"][0]["message"]["content"]
    assert [message["role"] for message in told] == ["system", "user"] + ["assistant", "user"] * (len(steps) - 1)


async def test_an_answer_grows_with_its_steps_and_no_faster(service: Service) -> None:
    service.model.answer = saying("no call here")
    sizes = []
    for turns in (6, 12, 24):
        given = {"heuristics": "off", "max_steps": turns}
        answer = await service.rollout(policy=given, record={"return_trace": True, "trace_format": "full"})
        sizes.append(len(json.dumps(answer)))
    per_turn = [(sizes[1] - sizes[0]) / 6, (sizes[2] - sizes[1]) / 12]
    assert per_turn[1] == pytest.approx(per_turn[0], rel=0.05)


async def test_the_model_is_asked_as_the_request_says(service: Service) -> None:
    config = {
        "model": "scripted:tag=1",
        "inference_url": "http://other.test/v1?cid=7",
        "temperature": 0.7,
        "top_p": 0.9,
        "max_tokens": 55,
        "seed": 2,
        "stop": "END",
        "extra_body": {"guided": {"a": 1}, "messages": [], "stream": True, "n": 4},
        "return_token_ids": True,
    }
    answer = await service.rollout(policy=config, record={"logprobs": True})
    body = {name: value for name, value in service.model.bodies[0].items() if name != "messages"}
    assert body == {
        "model": "scripted:tag=1",
        "temperature": 0.7,
        "top_p": 0.9,
        "max_tokens": 55,
        "seed": 2,
        "stop": ["END"],
        "guided": {"a": 1},
        "logprobs": True,
        "return_token_ids": True,
    }
    assert str(service.model.requests[0].url) == "http://other.test/v1/chat/completions?cid=7"
    (trajectory,) = answer["trajectories"]
    assert trajectory["inference_url"] == "http://other.test/v1/chat/completions?cid=7"
    assert trajectory["final"]["info"]["inference_url"] == trajectory["inference_url"]
    assert trajectory["final"]["info"]["policy_model"] == "scripted:tag=1"


async def test_what_a_request_leaves_out_is_the_server_s_to_say(serve: Serve) -> None:
    async with serve(default_model="scripted:tag=d", temperature=0.4, max_tokens=0, max_steps=2) as service:
        answer = await service.post(
            "/rollout", {"run_id": "r", "env": {}, "policy": {}, "ops": ["agent", "env"], "unknown": [1]}
        )
        body = service.model.bodies[0]
    assert {name: value for name, value in body.items() if name != "messages"} == {
        "model": "scripted:tag=d",
        "temperature": 0.4,
    }
    assert str(service.model.requests[0].url) == MODEL_URL
    assert (answer["trajectories"][0]["env_id"], answer["trajectories"][0]["policy_id"]) == ("verilog", "policy")
    assert (details_of(answer)["stop_reason"], len(steps_of(answer))) == ("max_steps", 2)
    assert details_of(answer)["problem"] == service.problems.select("val", 0).id


async def test_names_of_the_caller_come_back(service: Service) -> None:
    answer = await service.post(
        "/rollout",
        {
            "run_id": "my run",
            "env": {"env_id": "my env", "env_name": "verilog", "seed": 1},
            "policy": {"policy_id": "my policy", "policy_name": "scripted:tag=n", "config": {}},
            "ops": [],
        },
    )
    (trajectory,) = answer["trajectories"]
    assert (answer["run_id"], trajectory["env_id"], trajectory["policy_id"]) == ("my run", "my env", "my policy")
    assert service.model.bodies[0]["model"] == "scripted:tag=n", "without a model the policy's name is one"


async def test_steps_can_be_left_out(service: Service) -> None:
    answer = await service.rollout(record={"trajectories": False})
    (trajectory,) = answer["trajectories"]
    assert (trajectory["steps"], trajectory["length"], answer["metrics"]["num_steps"]) == ([], 4, 4)
    assert answer["metrics"]["mean_return"] == pytest.approx(11.06, abs=1e-9)
    assert trajectory["final"]["reward"] == pytest.approx(11.06, abs=1e-9)


async def test_rewards_of_the_request_are_what_is_paid(service: Service) -> None:
    rewards = {"compile_success": 1.5, "simulate_pass": 0, "submit_pass": -3, "step_penalty": 0.25}
    answer = await service.rollout(env={"rewards": rewards})
    assert check_numbers(answer) == pytest.approx(1.5 + 0 - 3 + 4 * 0.25)
    components = [step["info"]["reward_components"] for step in steps_of(answer)]
    assert components[1] == {"step_penalty": 0.25, "compile_success": 1.5}
    assert components[3] == {"step_penalty": 0.25, "submit_pass": -3.0}


async def test_partial_credit_is_paid_for_the_outputs_that_match(service: Service) -> None:
    problem = service.problems.get("vt001_min_max")
    wrong = designs_of(problem).right.replace("assign equal = ", "assign equal = !")
    assert wrong != designs_of(problem).right
    ops = [call("write_file", path="TopModule.v", content=wrong), call("submit")]
    answer = await service.rollout(ops=ops, env={"problem": problem.id, "rewards": {"partial": 3.0}})
    assert check_numbers(answer) == pytest.approx(-0.02 + 3.0 * 2 / 3)
    assert details_of(answer)["task_completed"] is False


async def test_a_problem_can_be_named_and_wins_over_the_seed(service: Service) -> None:
    answer = await service.rollout(seed=3, ops=[call("submit")], env={"problem": "vt030_gcd_engine"})
    assert details_of(answer)["problem"] == "vt030_gcd_engine"


async def test_an_unknown_problem_is_a_404_with_close_ones(service: Service) -> None:
    error = await service.error(404, env={"problem": "vt030_gdc_engine"})
    assert (error["code"], error["stage"], error["run_id"]) == ("problem_not_found", "dataset", "run-1")
    assert error["close_matches"][0] == "vt030_gcd_engine"
    assert "vt030_gcd_engine" in error["message"]


async def test_an_unusable_problem_is_a_409_by_name_and_is_stepped_over_by_seed(serve: Serve, tmp_path: Path) -> None:
    good = "module RefModule(input a, output y); assign y = ~a; endmodule\n"
    bench = """module tb; reg a = 0; wire r, d; integer e = 0, n = 0;
      RefModule good1(.a(a), .y(r)); TopModule top_module1(.a(a), .y(d));
      initial begin repeat (20) begin #5; n = n + 1; if (r !== d) e = e + 1; a = $random; end
      $display("Mismatches: %0d in %0d samples", e, n); $finish; end endmodule
    """
    for name, test in (("Prob001_bad", bench.replace(".y(d)", ".q(d)")), ("Prob002_good", bench)):
        (tmp_path / f"{name}_prompt.txt").write_text(f"Write TopModule, an inverter ({name}).")
        (tmp_path / f"{name}_ref.sv").write_text(good)
        (tmp_path / f"{name}_test.sv").write_text(test)
    async with serve(dataset=f"dir:{tmp_path}") as service:
        error = await service.error(409, env={"problem": "Prob001_bad"})
        assert (error["code"], error["stage"], error["retryable"]) == ("problem_unusable", "dataset", False)
        assert "Prob001_bad" in error["message"]
        assert str(tmp_path) not in json.dumps(error)
        answer = await service.rollout(seed=0, env={"split": "all"})
        assert details_of(answer)["problem"] == "Prob002_good"
        assert details_of(answer)["task_completed"] is True


async def test_ops_that_are_calls_are_executed_and_no_model_is_asked(service: Service) -> None:
    problem = service.problems.select("val", 0)
    right = designs_of(problem).right
    ops: list[dict[str, Any]] = [
        {"tool": "write_file", "args": {"path": "TopModule.v", "content": right}},
        {"tool_name": "COMPILE", "arguments": {}},
        {"function": {"name": "simulate", "arguments": "{}"}},
        {"tool": "dance", "args": {}},
        {"tool": "write_file", "args": "not json"},
        {"tool": "submit"},
        {"tool": "compile"},
    ]
    answer = await service.rollout(ops=ops)
    assert not service.model.requests
    assert tools_of(answer) == ["write_file", "compile", "simulate", None, None, "submit"]
    assert check_numbers(answer) == pytest.approx(11.1 - 0.06, abs=1e-9)
    assert details_of(answer)["task_completed"] is True
    assert answer["ops_executed"] == 4
    assert "dance" in steps_of(answer)[3]["info"]["error"]
    assert steps_of(answer)[0]["info"]["llm_request"] is None
    assert steps_of(answer)[0]["info"]["tokens"] is None
    assert answer["trajectories"][0]["final"]["info"]["policy_model"] is None


async def test_a_script_that_ends_without_a_submission_is_truncated_and_scored(service: Service) -> None:
    answer = await service.rollout(ops=[call("compile")])
    assert (details_of(answer)["status"], details_of(answer)["stop_reason"]) == ("truncated", "ops_exhausted")
    assert steps_of(answer)[-1]["truncated"] is True
    assert check_numbers(answer) == pytest.approx(-0.01)


async def test_max_steps_truncates_and_scores(service: Service) -> None:
    answer = await service.rollout(policy={"max_steps": 3})
    assert check_numbers(answer) == pytest.approx(1.1 - 0.03, abs=1e-9)
    details = details_of(answer)
    assert (details["status"], details["truncated"], details["stop_reason"]) == ("truncated", True, "max_steps")
    assert [step["truncated"] for step in steps_of(answer)] == [False, False, True]
    final = answer["trajectories"][0]["final"]
    assert (final["done"], final["truncated"], details["task_completed"]) == (False, True, False)
    assert answer["metrics"]["events_score"] == 0.5, "nothing was submitted"


@pytest.mark.parametrize("max_ops", [0, 1, 2])
async def test_max_ops_truncates_scripts_and_models_alike(service: Service, max_ops: int) -> None:
    played = await service.rollout(safety={"max_ops": max_ops})
    scripted = await service.rollout(ops=[call("compile")] * 3, safety={"max_ops": max_ops})
    for answer in (played, scripted):
        check_numbers(answer)
        assert (answer["ops_executed"], len(steps_of(answer))) == (max_ops, max_ops)
        assert (details_of(answer)["status"], details_of(answer)["stop_reason"]) == ("truncated", "max_ops")


async def test_no_time_at_all_truncates_before_the_first_turn(service: Service) -> None:
    for ops in ([], [call("compile")]):
        answer = await service.rollout(ops=ops, safety={"max_time_s": 0})
        assert (details_of(answer)["stop_reason"], details_of(answer)["steps"]) == ("max_time_s", 0)
        assert check_numbers(answer) == 0


async def test_max_time_s_ends_a_model_that_does_not_answer(service: Service) -> None:
    answer = await service.rollout(model="scripted:mode=hang", safety={"max_time_s": 0.2})
    assert (details_of(answer)["status"], details_of(answer)["stop_reason"]) == ("truncated", "max_time_s")


async def test_a_full_context_truncates_and_scores(service: Service) -> None:
    problem = service.problems.select("val", 0)
    write = call_text("write_file", path="TopModule.v", content=designs_of(problem).right)

    def answer(body: dict[str, Any]) -> httpx.Response:
        if turn_of(body) < 2:
            return completion([write, call_text("compile")][turn_of(body)])
        message = "This model's maximum context length is 4096 tokens."
        return httpx.Response(400, json={"error": {"message": message, "code": "context_length_exceeded"}})

    service.model.answer = answer
    ended = await service.rollout()
    assert (details_of(ended)["status"], details_of(ended)["stop_reason"]) == ("truncated", "context_length")
    assert check_numbers(ended) == pytest.approx(0.1 - 0.02, abs=1e-9)


@pytest.mark.parametrize("tool_mode", ["native", "auto"])
async def test_native_tool_calls_are_played_and_answered_as_such(service: Service, tool_mode: str) -> None:
    answer = await service.rollout(policy={"tool_mode": tool_mode})
    assert check_numbers(answer) == pytest.approx(11.06, abs=1e-9)
    first, *_, last = service.model.bodies
    assert [tool["function"]["name"] for tool in first["tools"]] == ["write_file", "compile", "simulate", "submit"]
    assert first["parallel_tool_calls"] is False
    roles = [message["role"] for message in last["messages"]]
    assert roles == ["system", "user"] + ["assistant", "tool"] * 3
    asked, told = last["messages"][2:4]
    assert told["tool_call_id"] == asked["tool_calls"][0]["id"]
    assert steps_of(answer)[0]["info"]["tokens"]["finish_reason"] == "tool_calls"


async def test_a_model_in_auto_mode_may_use_text_as_well(service: Service) -> None:
    texts = [call_text("compile"), call_text("submit")]
    service.model.answer = saying(*texts)
    answer = await service.rollout(policy={"tool_mode": "auto", "heuristics": "off"})
    assert tools_of(answer) == ["compile", "submit"]
    assert [message["role"] for message in service.model.bodies[1]["messages"]][2:] == ["assistant", "user"]


@pytest.mark.parametrize("tool_mode", ["json", "native"])
async def test_tokens_and_log_probabilities_pass_through_unchanged(service: Service, tool_mode: str) -> None:
    given = {"return_token_ids": True, "tool_mode": tool_mode}
    answer = await service.rollout(model="scripted:token_ids=1", policy=given, record={"logprobs": True})
    prompt: list[int] = []
    for step in steps_of(answer):
        response, tokens = step["info"]["model_response"], step["info"]["tokens"]
        assert tokens["prompt_token_ids"] == response["prompt_token_ids"]
        assert tokens["completion_token_ids"] == response["choices"][0]["token_ids"]
        assert len(tokens["completion_token_ids"]) == response["usage"]["completion_tokens"]
        assert tokens["logprobs"] == response["choices"][0]["logprobs"]
        assert len(tokens["logprobs"]["content"]) == len(tokens["completion_token_ids"])
        assert tokens["prompt_token_ids"][: len(prompt)] == prompt, "each prompt goes on where the last answer ended"
        prompt = tokens["prompt_token_ids"] + tokens["completion_token_ids"]


async def test_tokens_that_the_server_does_not_give_are_null(service: Service) -> None:
    answer = await service.rollout(policy={"return_token_ids": True})
    for step in steps_of(answer):
        assert step["info"]["tokens"] == {
            "prompt_token_ids": None,
            "completion_token_ids": None,
            "logprobs": None,
            "finish_reason": "stop",
        }


async def test_a_second_compile_earns_nothing(service: Service) -> None:
    right = designs_of(service.problems.select("val", 0)).right
    write = call("write_file", path="TopModule.v", content=right)
    edit = call("write_file", path="TopModule.v", content=right + "// edited\n")
    answer = await service.rollout(
        ops=[write, call("compile"), call("compile"), call("simulate"), edit, call("compile"), call("simulate")]
    )
    rewards = [step["reward"] for step in steps_of(answer)]
    assert rewards == pytest.approx([-0.01, 0.09, -0.01, 0.99, -0.01, -0.01, -0.01], abs=1e-9)


async def test_an_edit_after_a_good_simulation_is_what_is_judged(service: Service) -> None:
    designs = designs_of(service.problems.select("val", 0))
    write = call("write_file", path="TopModule.v", content=designs.right)
    spoil = call("write_file", path="TopModule.v", content=designs.wrong)
    spoilt = await service.rollout(ops=[write, call("compile"), call("simulate"), spoil, call("submit")])
    assert details_of(spoilt)["task_completed"] is False
    assert check_numbers(spoilt) == pytest.approx(1.1 - 0.05, abs=1e-9)
    repaired = await service.rollout(ops=[spoil, call("simulate"), write, call("submit")])
    assert details_of(repaired)["task_completed"] is True


async def test_a_second_rollout_of_a_seed_sees_a_fresh_workspace(service: Service) -> None:
    first = await service.rollout(
        ops=[call("write_file", path="notes.txt", content="mine"), call("write_file", path="TopModule.v", content="x")]
    )
    assert set(first["trajectories"][0]["final"]["observation"]["files"]) == {"TopModule.v", "notes.txt"}
    second = await service.rollout(ops=[call("compile")])
    (before,) = steps_of(second)
    assert set(before["obs"]["files"]) == {"TopModule.v"}
    assert before["obs"]["files"]["TopModule.v"].startswith("// Implement module TopModule in this file.")
    assert (before["obs"]["compile_status"], before["obs"]["total_reward"]) == ("", 0.0)


@pytest.mark.parametrize(
    "path", ["../x.v", "/tmp/x.v", "a/../../x.v", "~/x.v", "C:\\x.v", "..\\x.v", "-o.v", ".x.v", "x.so", "a\nb.v", ""]
)
async def test_no_file_is_written_outside_the_workspace(service: Service, path: str) -> None:
    answer = await service.rollout(ops=[call("write_file", path=path, content="module x; endmodule")])
    (step,) = steps_of(answer)
    assert (step["info"]["outcome"], step["reward"]) == ("refused", pytest.approx(-0.01))
    assert set(answer["trajectories"][0]["final"]["observation"]["files"]) == {"TopModule.v"}
    assert "refused" in step["info"]["error"]


async def test_a_blocked_compile_costs_the_step_and_says_so(service: Service) -> None:
    answer = await service.rollout(model="scripted:episode=compile_loop")
    blocked = [step for step in steps_of(answer) if "compile_blocked" in step["info"]]
    assert len(blocked) == details_of(answer)["blocks"] == 2
    for step in blocked:
        assert step["reward"] == pytest.approx(-0.01)
        assert step["info"]["compile_blocked"]["reason"] == "design_requires_update_before_compile"
        assert step["info"]["outcome"] == "blocked"
    assert check_numbers(answer) == pytest.approx(11.1 - 0.01 * len(steps_of(answer)), abs=1e-9)
    assert answer["ops_executed"] == len(steps_of(answer)) - 2
    bare = await service.rollout(model="scripted:episode=compile_loop", policy={"heuristics": "off"})
    assert not [step for step in steps_of(bare) if "compile_blocked" in step["info"]]
    assert details_of(bare)["blocks"] == 0


async def test_an_override_is_marked_and_only_made_in_full_mode(service: Service) -> None:
    right = designs_of(service.problems.select("val", 0)).right
    texts = [call_text("write_file", path="TopModule.v", content=right), call_text("compile"), call_text("compile")]
    service.model.answer = saying(*texts, "hmm", call_text("submit"))
    full = await service.rollout()
    marks = [step["info"].get("auto_override") for step in steps_of(full)]
    assert marks[:3] == [
        None,
        None,
        {"from": "compile", "reason": "compile_after_success_without_changes", "to": "simulate"},
    ]
    assert marks[3] == {"from": None, "reason": "no_tool_call", "to": "compile"}
    assert details_of(full)["overrides"] == 2
    for heuristics in ("guidance", "off"):
        other = await service.rollout(policy={"heuristics": heuristics})
        assert not [step for step in steps_of(other) if "auto_override" in step["info"]]
        assert tools_of(other) == ["write_file", "compile", "compile", None, "submit"]
        assert steps_of(other)[3]["reward"] == pytest.approx(-0.01)
        assert steps_of(other)[3]["info"]["error"]


async def test_one_step_can_be_all_that_a_model_gets_wrong(service: Service) -> None:
    answer = await service.rollout(model="scripted:mode=malformed", policy={"heuristics": "off", "max_steps": 4})
    assert tools_of(answer) == [None] * 4
    assert check_numbers(answer) == pytest.approx(-0.04)
    assert all(step["info"]["error"] for step in steps_of(answer))
    told = service.model.bodies[1]["messages"][-1]["content"]
    assert "not usable" in told


@pytest.mark.parametrize("trace_format", ["compact", "full"])
async def test_the_session_trace_comes_along_when_asked_for(service: Service, trace_format: str) -> None:
    answer = await service.rollout(record={"return_trace": True, "trace_format": trace_format})
    trace = answer["trace"]["session_trace"]
    assert trace["session_id"] == details_of(answer)["trace_id"]
    assert trace["metadata"]["status"] == "completed"
    assert trace["metadata"]["total_reward"] == pytest.approx(11.06)
    assert len(trace["session_time_steps"]) == 4
    kinds = [event["event_type"] for event in trace["event_history"]]
    assert kinds == ["cais", "environment"] * 4
    assert ("request" in trace["event_history"][0]) is (trace_format == "full")
    assert ("observation" in trace["event_history"][1]) is (trace_format == "full")
    sent = service.model.bodies[-1]["messages"]
    told = [one["message"] for one in trace["markov_blanket_message_history"]]
    assert told[: len(sent)] == sent
    assert [message["role"] for message in told[len(sent) :]] == ["assistant", "user"]


async def test_the_trace_is_stored_with_everything_in_it(service: Service) -> None:
    answer = await service.rollout()
    stored = await service.services.traces.load(details_of(answer)["trace_id"])
    assert stored is not None
    asked = await service.rollout(record={"return_trace": True, "trace_format": "full"})
    events = [event.keys() for event in stored["session_trace"]["event_history"]]
    assert events == [event.keys() for event in asked["trace"]["session_trace"]["event_history"]]


async def test_without_tracing_there_is_no_trace_id(serve: Serve, tmp_path: Path) -> None:
    async with serve(tracing_enabled=False, cache_dir=tmp_path / "own") as service:
        answer = await service.rollout()
    assert details_of(answer)["trace_id"] is None
    assert not (tmp_path / "own" / "traces").exists()


async def test_an_unwritable_trace_folder_costs_the_trace_and_nothing_else(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "traces").write_text("not a folder")
    async with serve(cache_dir=tmp_path / "own") as service:
        answer = await service.rollout()
        assert details_of(answer)["trace_id"] is None
        assert check_numbers(answer) == pytest.approx(11.06)
        failed = await service.error(424, model="scripted:mode=http500,status_code=401")
    assert failed["trace_id"] is None
    assert failed["partial_trajectory"]["steps"] == []
