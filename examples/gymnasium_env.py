#!/usr/bin/env python3
"""FrozenLake, CliffWalking and Taxi from Gymnasium as worlds for BEM. Needs: pip install gymnasium

Try it with: bem solve --env-cmd 'python3 examples/gymnasium_env.py FrozenLake'

`--horizon` and `--slippery` are parameters of a ladder: bem run --world examples/worlds/frozen_lake.toml

Every line is one JSON object. What Gymnasium calls a discrete observation is split into unnamed groups of bits, rewards become whole
milli-units, and BAD marks what one should never do: a hole, the cliff, an illegal pick-up or drop. These environments have a table of
all transitions, from which the first line says exactly what the best policy and random play earn in so many steps.
"""
import argparse
import json
import sys

import gymnasium


def bits_for(count):
    return max(1, (count - 1).bit_length())


def parts_of(name, env, observation):
    """The observation as whole numbers, lowest field first."""
    if name == "Taxi":
        return list(env.unwrapped.decode(observation))
    width = env.unwrapped.desc.shape[1] if name == "FrozenLake" else env.unwrapped.shape[1]
    return [observation % width, observation // width]


WORLDS = {
    # name: (options, sizes of the parts, horizon, range of rewards, range of what an episode pays)
    "FrozenLake": ({"map_name": "4x4"}, [4, 4], 100, (0, 1), (0, 1)),
    "CliffWalking": ({}, [12, 4], 200, (-100, -1), (-20000, -13)),
    "Taxi": ({}, [5, 5, 5, 4], 200, (-10, 20), (-2000, 20)),
}


def latest(name):
    """Gymnasium's newest version of a world; old ones are retired from time to time."""
    versions = [int(spec.version or 0) for spec in gymnasium.registry.values() if spec.name == name]
    return f"{name}-v{max(versions)}"


def is_bad(name, reward, terminated):
    if name == "FrozenLake":
        return terminated and reward == 0
    return reward == (-100 if name == "CliffWalking" else -10)


def worth(env, horizon, better):
    """What an episode of so many steps is worth from its start, by the table of transitions."""
    world = env.unwrapped
    value = [0.0] * world.observation_space.n
    for _ in range(horizon):
        value = [better([sum(chance * (reward + (0 if done else value[after])) for chance, after, reward, done in outcomes)
                         for outcomes in world.P[state].values()]) for state in range(len(value))]
    return sum(chance * value[state] for state, chance in enumerate(world.initial_state_distrib))


def mean(values):
    return sum(values) / len(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world", choices=sorted(WORLDS))
    parser.add_argument("--slippery", nargs="?", const="true", default="false", choices=["true", "false"],
                        help="let the ice of FrozenLake be slippery")
    parser.add_argument("--horizon", type=int, help="steps of an episode")
    arguments = parser.parse_args()
    name = arguments.world
    options, sizes, usual, (low, high), (least, most) = WORLDS[name]
    horizon = arguments.horizon or usual
    least, most = (min(low, 0) * horizon, most) if arguments.horizon else (least, most)
    if name == "FrozenLake":
        options = dict(options, is_slippery=arguments.slippery == "true")
    env = gymnasium.make(latest(name), max_episode_steps=horizon, **options)
    widths = [bits_for(size) for size in sizes]
    fields = [[sum(widths[:index]), width] for index, width in enumerate(widths)]

    def bits(observation):
        parts = parts_of(name, env, int(observation))
        return "".join(str(part >> bit & 1) for part, width in zip(parts, widths) for bit in range(width))

    def say(message):
        print(json.dumps(message, separators=(",", ":")), flush=True)

    say({"hello": 1, "obs_bits": sum(widths), "actions": int(env.action_space.n), "horizon": horizon,
         "reward_range": [1000 * low, 1000 * high], "return_range": [1000 * least, 1000 * most], "fields": fields,
         "optimum": round(1000 * worth(env, horizon, max)), "random": round(1000 * worth(env, horizon, mean))})
    for line in sys.stdin:
        message = json.loads(line)
        if "reset" in message:
            # Gymnasium takes seeds of 32 bits.
            observation, _ = env.reset(seed=message["reset"] % 2**32)
            say({"obs": bits(observation)})
        else:
            observation, reward, terminated, truncated, _ = env.step(message["act"])
            say({"obs": bits(observation), "reward": round(1000 * float(reward)),
                 "done": bool(terminated or truncated), "bad": bool(is_bad(name, reward, terminated))})


if __name__ == "__main__":
    main()
