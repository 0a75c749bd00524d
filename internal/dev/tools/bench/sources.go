package main

import (
	"fmt"
	"path/filepath"
)

// A source is a package with benchmarks, and what is taken from them.
type source struct {
	module, pkg, match, benchtime string
	args, env                     []string // what the test binary is given beside that
	rounds                        int      // how many rounds it is part of; 0 is all
	ours                          bool
	picks                         map[string]string // as of a suite
}

// longRounds is from how many rounds on the log that is verified is as long as
// the target says: making a million records takes longer than all the rest.
const longRounds = 30

// turns is how often a benchmark does what it measures: less where nothing is to
// be judged.
func (b *bench) turns(n int) string {
	if b.rounds < fewest {
		n = max(1, n/20)
	}
	return fmt.Sprintf("%dx", n)
}

func (b *bench) sources() []source {
	long := []string(nil)
	if b.rounds >= longRounds {
		long = []string{"RLP_SOAK=1"}
	}
	tools := filepath.Join(b.root, "internal", "dev", "tools")
	return append(b.calls(tools), []source{
		{
			module: b.root, pkg: "./internal/engine/guest", match: `^BenchmarkFirstInstruction$/^tiny$`, benchtime: b.turns(300),
			ours: true, picks: map[string]string{
				"FirstInstruction/tiny p50-first-us":                                   "instance/first",
				"FirstInstruction/tiny p50-link-us + FirstInstruction/tiny p50-run-us": "instance/rlp",
			},
		},
		{
			module: tools, pkg: "./bench/bare", match: `^BenchmarkInstantiate$`, benchtime: b.turns(300),
			picks: map[string]string{"Instantiate p50-us": "instance/bare"},
		},
		{
			module: tools, pkg: "./bench/extism", match: `^BenchmarkInstantiate$`, benchtime: b.turns(300),
			picks: map[string]string{"Instantiate p50-us": "instance/extism"},
		},
		{
			module: b.root, pkg: "./launcher/run", match: `^BenchmarkIdle$/^(tiny|go)=`, benchtime: b.turns(1), rounds: 3,
			ours: true, picks: map[string]string{
				"Idle/tiny=1000 KiB/agent": "idle/rlp", "Idle/go=100 KiB/agent": "idle/go",
			},
		},
		{
			module: tools, pkg: "./bench/bare", match: `^BenchmarkIdle$`, benchtime: b.turns(1), rounds: 3,
			picks: map[string]string{"Idle KiB/instance": "idle/bare"},
		},
		{
			module: tools, pkg: "./bench/extism", match: `^BenchmarkIdle$`, benchtime: b.turns(1), rounds: 3,
			picks: map[string]string{"Idle KiB/instance": "idle/extism"},
		},
		{
			module: b.root, pkg: "./kb", match: `^BenchmarkDurable$/^(journals|badger)$/^(1|8|64)$`, benchtime: b.turns(3000),
			ours: true, picks: map[string]string{
				"Durable/journals/1 records/s": "durable/1", "Durable/badger/1 records/s": "durable/badger-1",
				"Durable/journals/8 records/s": "durable/8", "Durable/badger/8 records/s": "durable/badger-8",
				"Durable/journals/64 records/s": "durable/64", "Durable/badger/64 records/s": "durable/badger-64",
			},
		},
		{
			module: b.root, pkg: "./kb/log", match: `^BenchmarkDurableIngest$`, benchtime: b.turns(20), ours: true,
			picks: map[string]string{
				"DurableIngest/batch=1,ends=false of-badger": "ingest/1", "DurableIngest/batch=64,ends=true of-badger": "ingest/64",
				"DurableIngest/batch=1000,ends=true of-badger": "ingest/1000",
			},
		},
		{
			module: b.root, pkg: "./kb/log", match: `^Benchmark(VerifyLog|ScanRun)$`, benchtime: b.turns(2),
			args: []string{"-test.cpu", "1"}, env: long, rounds: 1, ours: true, picks: map[string]string{
				"VerifyLog records/s": "log/verified", "ScanRun ns/op": "log/scan",
			},
		},
	}...)
}

// calls are the benchmarks of what a guest asks of its host.
func (b *bench) calls(tools string) []source {
	return []source{
		{
			module: b.root, pkg: "./hostcalls", match: `^BenchmarkHostCall$/^(floor=empty|checked=(allowed|denied|changing))$`,
			benchtime: b.turns(8), ours: true, picks: map[string]string{
				"HostCall/floor=empty ns/call": "call/empty", "HostCall/checked=allowed ns/call": "call/allowed",
				"HostCall/checked=denied ns/call": "call/denied", "HostCall/checked=changing ns/call": "call/changing",
			},
		},
		{module: tools, pkg: "./bench/extism", match: `^BenchmarkHostCall$`, benchtime: b.turns(4), picks: map[string]string{
			"HostCall/protocol=stack ns/call": "call/extism-stack", "HostCall/protocol=argument ns/call": "call/extism",
			"HostCall/protocol=memory ns/call": "call/extism-reply",
		}},
		{
			module: b.root, pkg: "./internal/effect/jail", match: `^BenchmarkGuest$/^op=stat$`, benchtime: b.turns(10),
			ours: true, picks: map[string]string{
				"Guest/op=stat/floor=dirmount ns/turn": "stat/mount", "Guest/op=stat/checked=jail ns/turn": "stat/rlp",
			},
		},
	}
}
