import asyncio


async def numbers(count):
    for number in range(count):
        await asyncio.sleep(0)
        yield number


async def total(count):
    found = 0
    async for number in numbers(count):
        found += number
    return found


async def both(one, other):
    first, second = await asyncio.gather(total(one), total(other))
    return first - second
