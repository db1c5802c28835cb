"""Kernels over bitmaps in RoaringBitmap's portable format; a set is a sorted run of uint32 values.

Row i of a list of sets is ``values[starts[i]:starts[i + 1]]``. Source: RoaringFormatSpec, "Specification of the
compressed-bitmap formats from Roaring".
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import kernel


@kernel("void(int32[::1], uint8[::1], boolean[::1], int64[::1])")
def cardinalities(offsets, data, valid, counts):
    """The number of values of each serialised bitmap; 0 of a NULL, -1 of malformed bytes."""
    for row in range(counts.size):
        counts[row] = 0
        if not valid[row]:
            continue
        start = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        counts[row] = -1
        if end - start < 8:
            continue
        cookie = np.int64(data[start]) | np.int64(data[start + 1]) << 8
        place = start + 4
        flags = np.int64(-1)
        if cookie == 12347:
            size = (np.int64(data[start + 2]) | np.int64(data[start + 3]) << 8) + 1
            flags = place
            place += (size + 7) // 8
        elif cookie == 12346 and data[start + 2] == 0 and data[start + 3] == 0:
            size = np.int64(0)
            for step in range(4):
                size |= np.int64(data[place + step]) << (8 * step)
            place += 4
        else:
            continue
        header = place
        place += 4 * size
        if flags < 0 or size >= 4:
            place += 4 * size
        if size < 0 or size > 65536 or place > end:
            continue
        total = np.int64(0)
        fits = True
        before = np.int64(-1)
        for index in range(size):
            at = header + 4 * index
            key = np.int64(data[at]) | np.int64(data[at + 1]) << 8
            card = (np.int64(data[at + 2]) | np.int64(data[at + 3]) << 8) + 1
            if key <= before:
                fits = False
                break
            before = key
            if flags >= 0 and data[flags + index // 8] >> (index % 8) & 1:
                if place + 2 > end:
                    fits = False
                    break
                runs = np.int64(data[place]) | np.int64(data[place + 1]) << 8
                if place + 2 + 4 * runs > end:
                    fits = False
                    break
                card = np.int64(0)
                for run in range(runs):
                    at = place + 2 + 4 * run
                    card += (np.int64(data[at + 2]) | np.int64(data[at + 3]) << 8) + 1
                place += 2 + 4 * runs
            elif card > 4096:
                place += 8192
            else:
                place += 2 * card
            if place > end:
                fits = False
                break
            total += card
        if fits:
            counts[row] = total


@kernel("void(int32[::1], uint8[::1], int64[::1], uint32[::1])")
def decode(offsets, data, starts, values):
    """The values of well-formed bitmaps, ascending, to where ``starts`` puts them; empty rows are not looked at."""
    for row in range(starts.size - 1):
        target = starts[row]
        if target == starts[row + 1]:
            continue
        start = np.int64(offsets[row])
        place = start + 4
        flags = np.int64(-1)
        if data[start] == 0x3B:
            size = (np.int64(data[start + 2]) | np.int64(data[start + 3]) << 8) + 1
            flags = place
            place += (size + 7) // 8
        else:
            size = np.int64(data[place]) | np.int64(data[place + 1]) << 8 | np.int64(data[place + 2]) << 16
            place += 4
        header = place
        place += 4 * size
        if flags < 0 or size >= 4:
            place += 4 * size
        for index in range(size):
            at = header + 4 * index
            high = (np.int64(data[at]) | np.int64(data[at + 1]) << 8) << 16
            card = (np.int64(data[at + 2]) | np.int64(data[at + 3]) << 8) + 1
            if flags >= 0 and data[flags + index // 8] >> (index % 8) & 1:
                runs = np.int64(data[place]) | np.int64(data[place + 1]) << 8
                for run in range(runs):
                    at = place + 2 + 4 * run
                    low = np.int64(data[at]) | np.int64(data[at + 1]) << 8
                    length = (np.int64(data[at + 2]) | np.int64(data[at + 3]) << 8) + 1
                    for step in range(length):
                        values[target] = np.uint32(high + low + step)
                        target += 1
                place += 2 + 4 * runs
            elif card > 4096:
                for byte in range(8192):
                    bits = data[place + byte]
                    for bit in range(8):
                        if bits >> bit & 1 and target < starts[row + 1]:
                            values[target] = np.uint32(high + 8 * byte + bit)
                            target += 1
                place += 8192
            else:
                for step in range(card):
                    at = place + 2 * step
                    values[target] = np.uint32(high + (np.int64(data[at]) | np.int64(data[at + 1]) << 8))
                    target += 1
                place += 2 * card


@kernel("void(int64[::1], uint32[::1], int64[::1], int64[::1])")
def encoded_sizes(starts, values, sizes, scattered):
    """The bytes that each set takes when serialised.

    ``scattered`` gets the number of containers of a set whose containers all list their values, -1 of any other set.
    """
    for row in range(sizes.size):
        start = starts[row]
        end = starts[row + 1]
        containers = np.int64(0)
        with_runs = False
        with_bits = False
        body = np.int64(0)
        card = np.int64(0)
        runs = np.int64(0)
        # One step behind the end closes the last container.
        for place in range(start, end + 1):
            closes = place == end
            if not closes and card > 0:
                closes = values[place] >> 16 != values[place - 1] >> 16
            if closes:
                if card > 0:
                    plain = 2 * card
                    if plain > 8192:
                        plain = np.int64(8192)
                        with_bits = True
                    if plain > 2 + 4 * runs:
                        with_runs = True
                        plain = 2 + 4 * runs
                    body += plain
                    containers += 1
                card = np.int64(0)
                runs = np.int64(0)
            if place < end:
                if card == 0 or values[place] != values[place - 1] + 1:
                    runs += 1
                card += 1
        if with_runs:
            sizes[row] = 4 + (containers + 7) // 8 + 4 * containers + body
            if containers >= 4:
                sizes[row] += 4 * containers
        else:
            sizes[row] = 8 + 8 * containers + body
        scattered[row] = -1 if with_runs or with_bits else containers


@kernel("void(int64[::1], uint32[::1], int64[::1], int32[::1], uint8[::1])")
def encode_scattered(starts, values, scattered, out_offsets, out):
    """The sets that ``encoded_sizes`` found scattered, to where ``out_offsets`` (zeroed bytes) puts them."""
    # Unsigned places: Numba asks of signed ones whether they count from the end.
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for row in range(scattered.size):
        containers = scattered[row]
        if containers < 0 or out_offsets[row] == out_offsets[row + 1]:
            continue
        base = np.uint64(out_offsets[row])
        header = base + np.uint64(8)
        jumps = header + np.uint64(4 * containers)
        target = jumps + np.uint64(4 * containers)
        out[base] = 0x3A
        out[base + one] = 0x30
        out[base + np.uint64(4)] = containers & 255
        out[base + np.uint64(5)] = containers >> 8 & 255
        out[base + np.uint64(6)] = containers >> 16
        above = np.uint32(0xFFFFFFFF)
        # The cardinality less one of the container that grows.
        more = np.uint32(0)
        for place in range(np.uint64(starts[row]), np.uint64(starts[row + 1])):
            value = values[place]
            high = value >> np.uint32(16)
            if high == above:
                more += np.uint32(1)
                out[header - two] = more & np.uint32(255)
                out[header - one] = more >> np.uint32(8)
            else:
                above = high
                more = np.uint32(0)
                out[header] = high & np.uint32(255)
                out[header + one] = high >> np.uint32(8)
                header += np.uint64(4)
                jump = target - base
                out[jumps] = jump & np.uint64(255)
                out[jumps + one] = jump >> np.uint64(8) & np.uint64(255)
                out[jumps + two] = jump >> np.uint64(16) & np.uint64(255)
                out[jumps + three] = jump >> np.uint64(24)
                jumps += np.uint64(4)
            out[target] = value & np.uint32(255)
            out[target + one] = value >> np.uint32(8) & np.uint32(255)
            target += two


@kernel("void(int64[::1], uint32[::1], int64[::1], int32[::1], uint8[::1])")
def encode(starts, values, scattered, out_offsets, out):
    """Each other set in the smallest of the portable forms, to where ``out_offsets`` (zeroed bytes) puts it."""
    for row in range(out_offsets.size - 1):
        if scattered[row] >= 0:
            continue
        base = np.int64(out_offsets[row])
        size = np.int64(out_offsets[row + 1]) - base
        end = starts[row + 1]
        containers = np.int64(0)
        with_runs = False
        place = starts[row]
        while place < end:
            high = values[place] >> 16
            first = place
            runs = np.int64(1)
            place += 1
            while place < end and values[place] >> 16 == high:
                if values[place] != values[place - 1] + 1:
                    runs += 1
                place += 1
            if min(2 * (place - first), 8192) > 2 + 4 * runs:
                with_runs = True
            containers += 1
        if size == 0:
            continue
        flags = base + 4
        if with_runs:
            out[base] = 0x3B
            out[base + 1] = 0x30
            out[base + 2] = (containers - 1) & 255
            out[base + 3] = (containers - 1) >> 8
            header = flags + (containers + 7) // 8
        else:
            out[base] = 0x3A
            out[base + 1] = 0x30
            for step in range(4):
                out[base + 4 + step] = containers >> (8 * step) & 255
            header = base + 8
        jumps = header + 4 * containers
        with_jumps = not with_runs or containers >= 4
        target = jumps + (4 * containers if with_jumps else 0)
        place = starts[row]
        for index in range(containers):
            high = np.int64(values[place]) >> 16
            first = place
            runs = np.int64(1)
            place += 1
            while place < end and np.int64(values[place]) >> 16 == high:
                if values[place] != values[place - 1] + 1:
                    runs += 1
                place += 1
            card = place - first
            at = header + 4 * index
            out[at] = high & 255
            out[at + 1] = high >> 8
            out[at + 2] = (card - 1) & 255
            out[at + 3] = (card - 1) >> 8
            if with_jumps:
                for step in range(4):
                    out[jumps + 4 * index + step] = (target - base) >> (8 * step) & 255
            if min(2 * card, 8192) > 2 + 4 * runs:
                out[flags + index // 8] |= 1 << (index % 8)
                out[target] = runs & 255
                out[target + 1] = runs >> 8
                target += 2
                begin = first
                for step in range(first, place):
                    if step + 1 == place or values[step + 1] != values[step] + 1:
                        low = np.int64(values[begin]) & 0xFFFF
                        out[target] = low & 255
                        out[target + 1] = low >> 8
                        out[target + 2] = (step - begin) & 255
                        out[target + 3] = (step - begin) >> 8
                        target += 4
                        begin = step + 1
            elif card > 4096:
                for step in range(first, place):
                    low = np.int64(values[step]) & 0xFFFF
                    out[target + low // 8] |= 1 << (low % 8)
                target += 8192
            else:
                for step in range(first, place):
                    low = np.int64(values[step]) & 0xFFFF
                    out[target] = low & 255
                    out[target + 1] = low >> 8
                    target += 2


@kernel("int64(int64, int64[::1], uint32[::1], int64[::1], uint32[::1], int64[::1], uint32[::1])")
def combine(kept, starts_a, a, starts_b, b, out_starts, out):
    """Set operation row by row; returns the number of values written.

    ``kept`` says which values stay: bit 0 those of the first set alone, bit 1 those of the second alone, bit 2 those of
    both.
    """
    # Unsigned places: Numba asks of signed ones whether they count from the end.
    one = np.uint64(1)
    written = np.uint64(0)
    out_starts[0] = 0
    for row in range(out_starts.size - 1):
        left = np.uint64(starts_a[row])
        right = np.uint64(starts_b[row])
        left_end = np.uint64(starts_a[row + 1])
        right_end = np.uint64(starts_b[row + 1])
        while left < left_end and right < right_end:
            lesser, greater = a[left], b[right]
            if lesser < greater:
                out[written] = lesser
                written += np.uint64(kept & 1)
                left += one
            elif greater < lesser:
                out[written] = greater
                written += np.uint64(kept >> 1 & 1)
                right += one
            else:
                out[written] = lesser
                written += np.uint64(kept >> 2)
                left += one
                right += one
        if kept & 1:
            for place in range(left, left_end):
                out[written] = a[place]
                written += one
        if kept & 2:
            for place in range(right, right_end):
                out[written] = b[place]
                written += one
        out_starts[row + 1] = np.int64(written)
    return np.int64(written)


@kernel("int64(int64[::1], uint32[::1], int32[::1], uint8[::1])")
def write_texts(starts, values, out_offsets, out):
    """``{1,2,3}`` for each set; returns the number of bytes written, at most 11 a value and 2 a row."""
    size = np.int64(0)
    out_offsets[0] = 0
    for row in range(starts.size - 1):
        out[size] = 0x7B
        size += 1
        for place in range(starts[row], starts[row + 1]):
            if place > starts[row]:
                out[size] = 0x2C
                size += 1
            rest = np.int64(values[place])
            power = np.int64(10)
            digits = np.int64(1)
            while rest >= power:
                power *= 10
                digits += 1
            size += digits
            for back in range(1, digits + 1):
                out[size - back] = 0x30 + rest % 10
                rest //= 10
        out[size] = 0x7D
        size += 1
        out_offsets[row + 1] = size
    return size
