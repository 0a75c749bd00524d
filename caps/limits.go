package caps

import (
	"fmt"
	"math"
)

// A Limit is one bound on what a run may use.
type Limit uint8

// The limits, in the order of the contract.
const (
	WallTimeMS Limit = iota
	CPUFuel
	MemoryBytes
	StdoutMaxBytes
	StderrMaxBytes
	HostcallsMax
	MaxDepth
	NetBytes
	NetRequestsPerMinute
	ExecSpawns
	ModelTokens
	ModelTokensPerMinute
	ModelUSD // in millionths of a dollar
	KBWriteBytes
	NumLimits
)

// MaxCPUFuel is the most cpu_fuel that anyone can give; more is this much.
const MaxCPUFuel = 2_000_000_000

type limit struct {
	key  string
	max  int64 // an upper clamp; 0: none
	unit int64 // how many units of ours one of the file's is; 0: one
}

var limits = [NumLimits]limit{
	WallTimeMS:           {key: "wall_time_ms"},
	CPUFuel:              {key: "cpu_fuel", max: MaxCPUFuel},
	MemoryBytes:          {key: "memory_bytes"},
	StdoutMaxBytes:       {key: "stdout_max_bytes"},
	StderrMaxBytes:       {key: "stderr_max_bytes"},
	HostcallsMax:         {key: "hostcalls_max"},
	MaxDepth:             {key: "max_depth"},
	NetBytes:             {key: "net_bytes"},
	NetRequestsPerMinute: {key: "net_requests_per_minute"},
	ExecSpawns:           {key: "exec_spawns"},
	ModelTokens:          {key: "model_tokens"},
	ModelTokensPerMinute: {key: "model_tokens_per_minute"},
	ModelUSD:             {key: "model_usd", unit: 1_000_000},
	KBWriteBytes:         {key: "kb_write_bytes"},
}

// aliases are the spellings of another system, and how many of our units one
// of theirs is. A step there is 1,000,000 metered instructions; a unit of fuel
// is 64.
var aliases = []struct {
	key   string
	limit Limit
	unit  int64
}{
	{"max_steps", CPUFuel, 1_000_000 / 64},
	{"max_adapter_calls", HostcallsMax, 1},
	{"max_time_ms", WallTimeMS, 1},
}

// String is the key of l in policy files.
func (l Limit) String() string {
	if l >= NumLimits {
		return "unknown"
	}
	return limits[l].key
}

// LimitOf is the limit whose key is key, an alias included, and the factor that
// turns a value written under key into the limit's own unit.
func LimitOf(key string) (l Limit, unit int64, ok bool) {
	for i := range limits {
		if limits[i].key == key {
			return Limit(i), max(limits[i].unit, 1), true
		}
	}
	for _, a := range aliases {
		if a.key == key {
			return a.limit, a.unit, true
		}
	}
	return 0, 0, false
}

// Limits are the bounds that are set, each by its key; a key that is not set
// bounds nothing, and one that is 0 leaves nothing at all. A Limits is an
// immutable value; its zero value bounds nothing.
type Limits struct {
	set    uint32
	values [NumLimits]int64
}

// ParseLimit is the limit that a file means by key = value, in its own unit and
// clamped. It refuses unknown keys, negative values and what overflows.
func ParseLimit(key string, value int64) (Limit, int64, error) {
	l, unit, ok := LimitOf(key)
	switch {
	case !ok:
		return 0, 0, fmt.Errorf("limit %q is unknown", key)
	case value < 0:
		return 0, 0, fmt.Errorf("limit %s is %d: write 0 for none at all, or leave the key out for no restriction", key,
			value)
	case value > math.MaxInt64/unit:
		return 0, 0, fmt.Errorf("limit %s is %d: too large", key, value)
	}
	return l, clamp(l, value*unit), nil
}

func clamp(l Limit, v int64) int64 {
	if top := limits[l].max; top != 0 {
		return min(v, top)
	}
	return v
}

// With is x with l set to v, clamped from above. A negative v sets 0: what
// makes no sense leaves nothing.
func (x Limits) With(l Limit, v int64) Limits {
	if l < NumLimits {
		x.set |= 1 << l
		x.values[l] = clamp(l, max(v, 0))
	}
	return x
}

// Get is the value of l, and whether it is set.
func (x Limits) Get(l Limit) (int64, bool) {
	if x.set&(1<<l) == 0 {
		return 0, false
	}
	return x.values[l], true
}

// Min is the meet of x and y: each key that either sets, at the lesser value.
func (x Limits) Min(y Limits) Limits {
	for l := range NumLimits {
		if v, ok := y.Get(l); ok {
			if have, both := x.Get(l); both {
				v = min(v, have)
			}
			x = x.With(l, v)
		}
	}
	return x
}

// Map is what is set, by key, each in the limit's own unit.
func (x Limits) Map() map[string]int64 {
	m := make(map[string]int64)
	for l := range NumLimits {
		if v, ok := x.Get(l); ok {
			m[l.String()] = v
		}
	}
	return m
}
