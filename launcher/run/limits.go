package run

import (
	"math"
	"time"

	"runloop.dev/rlp/caps"
)

// wallTime is the deadline; what is longer than any clock counts is the longest.
func wallTime(l caps.Limits) time.Duration {
	ms, _ := l.Get(caps.WallTimeMS)
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// fuelUnit is how many metered instructions one of cpu_fuel is.
const fuelUnit = 64

// instructions is the fuel in what the guest counts; nil when nothing bounds it.
func instructions(l caps.Limits) *int64 {
	if units, set := l.Get(caps.CPUFuel); set {
		return new(units * fuelUnit)
	}
	return nil
}

func limitOr(l caps.Limits, k caps.Limit) int64 {
	if v, set := l.Get(k); set {
		return v
	}
	return -1
}
