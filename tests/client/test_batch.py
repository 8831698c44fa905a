"""Many rollouts at once, over a stream that may break."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import httpx
import pytest

from tests.client.conftest import URL, Network, client_over
from tests.support import KEY, MIN_MAX, Service, rollout_request
from verilog_taskapp.client import BatchAnswer, Client, DeadlinePassed, ServiceUnreachable, UnreadableAnswer
from verilog_taskapp.contracts import RolloutBatchRequest, RolloutRequest
from verilog_taskapp.errors import ProblemNotFound
from verilog_taskapp.scripted import ScriptedOptions

pytestmark = pytest.mark.asyncio(loop_scope="module")


def three() -> list[RolloutRequest]:
    return [
        rollout_request(env=MIN_MAX),
        rollout_request(env={"problem": "nothing"}),
        rollout_request(env=MIN_MAX, model="scripted:wrong"),
    ]


async def answers_of(client: Client, requests: list[RolloutRequest]) -> list[BatchAnswer]:
    return sorted([one async for one in client.rollout_batch(requests)], key=lambda one: one.index)


async def test_each_request_is_answered_once(client: Client) -> None:
    right, missing, wrong = await answers_of(client, three())
    assert right.response is not None
    assert right.response.metrics.details.task_completed
    assert isinstance(missing.error, ProblemNotFound)
    assert (missing.response, missing.error.status) == (None, 404)
    assert wrong.response is not None
    assert wrong.response.metrics.mean_return == pytest.approx(0.06)
    assert await answers_of(client, []) == []


class Cut(httpx.AsyncByteStream):
    """The first lines of an answer, and then the connection breaks, or simply ends."""

    def __init__(self, lines: list[bytes], error: Exception | None) -> None:
        self._lines = lines
        self._error = error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for line in self._lines:
            yield line + b"\n"
        if self._error is not None:
            raise self._error


async def lines_of(service: Service, requests: list[RolloutRequest]) -> list[bytes]:
    """The real answer to a batch."""
    body = RolloutBatchRequest(requests=requests).model_dump_json(exclude_unset=True)
    response = await service.client.post("/rollout/batch", content=body, headers={"Content-Type": "application/json"})
    return [line.encode() for line in response.text.splitlines()]


@pytest.mark.parametrize("error", [httpx.ReadError("broken"), None])
async def test_what_a_broken_stream_did_not_answer_is_asked_for_again(
    client: Client, service: Service, network: Network, error: Exception | None
) -> None:
    lines = await lines_of(service, three())
    first = next(line for line in lines if b'"index":1' in line)
    network.before = [httpx.Response(200, stream=Cut([b"", b'{"heartbeat":{"ended":0,"total":3}}', first], error))]
    found = await answers_of(client, three())
    assert [one.index for one in found] == [0, 1, 2]
    assert isinstance(found[1].error, ProblemNotFound)
    assert found[0].response is not None
    assert network.seen == ["/rollout/batch"] * 2


async def test_a_service_that_never_answers_is_given_up(service: Service, network: Network) -> None:
    network.before = [httpx.Response(200, stream=Cut([], None)) for _ in range(9)]
    async with client_over(network, retries=2) as client:
        with pytest.raises(ServiceUnreachable, match="3 of 3 rollouts unanswered"):
            await answers_of(client, three())
    assert len(network.seen) == 3


@pytest.mark.parametrize("line", [b"<html>", b'{"index":7,"status":200}', b"[]"])
async def test_another_servers_words(client: Client, network: Network, line: bytes) -> None:
    network.before = [httpx.Response(200, stream=Cut([line], None))]
    with pytest.raises(UnreadableAnswer):
        await answers_of(client, three())


async def test_the_deadline_ends_it(client: Client, service: Service) -> None:
    service.model.forget(ScriptedOptions(mode="hang"))
    with pytest.raises(DeadlinePassed):
        await anext(client.rollout_batch(three()[:1], deadline_s=0.2))
    assert service.services.rollouts.in_flight == 0


async def test_leaving_early_closes_the_stream() -> None:
    closed: list[bool] = []

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                yield b'{"index":0,"status":500,"error":{"code":"environment_failed","message":"m"}}\n'

        async def aclose(self) -> None:
            closed.append(True)

    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Endless()))
    async with Client(URL, KEY, transport=transport) as client, aclosing(client.rollout_batch(three())) as found:
        async for answer in found:
            assert answer.error is not None
            break
    assert closed == [True]
