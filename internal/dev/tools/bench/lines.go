package main

// A line compares one figure of this project with what it is measured against.
// Figures go by the keys that launches and suites keep them under.
type line struct {
	what    string
	ours    string
	against string            // the figure that ours is divided by; none for a bare figure
	floor   string            // how against is called in the table
	goal    goal              // what is promised
	unit    string            // in which all of the line is shown
	scale   float64           // what a figure is multiplied by to be in that unit; 0 is 1
	peers   map[column]string // their figures
}

// A goal bounds a quotient, or our own figure in the unit that is shown. The
// zero goal promises nothing.
type goal struct {
	at    float64
	own   bool // it is about our own figure
	least bool // it is to be reached, not stayed below
}

func atMost(times float64) goal      { return goal{at: times} }
func atLeast(times float64) goal     { return goal{at: times, least: true} }
func ownAtMost(figure float64) goal  { return goal{at: figure, own: true} }
func ownAtLeast(figure float64) goal { return goal{at: figure, own: true, least: true} }

// A column is a peer that has one in the table.
type column string

var columns = []column{"extism", "deno", "deno audited", "node", "bwrap"}

func launchPeers(guest string) map[column]string {
	return map[column]string{
		"extism": guest + "/extism", "deno": guest + "/deno", "deno audited": guest + "/deno-audit",
		"node": guest + "/node", "bwrap": guest + "/bwrap",
	}
}

// lines are the table, and what the project promises of each.
func lines() []line {
	calls := map[column]string{
		"extism": "call/extism", "deno": "call/deno", "deno audited": "call/deno-audit",
		"node": "call/node",
	}
	stats := map[column]string{"deno": "stat/deno", "deno audited": "stat/deno-audit", "node": "stat/node"}
	return []line{
		{
			what: "launch, tiny agent", unit: "ms", ours: "tiny/rlp", against: "tiny/bare+sync", floor: "bare + fdatasync",
			goal: atMost(1.3), peers: launchPeers("tiny"),
		},
		{
			what: "  through rlp daemon", unit: "ms", ours: "tiny/daemon", against: "tiny/bare+sync", floor: "bare + fdatasync",
			goal: atMost(0.7),
		},
		{
			what: "launch, Go agent of 2.5 MB", unit: "ms", ours: "go/rlp", against: "go/bare", floor: "bare",
			goal: atMost(1.15), peers: launchPeers("go"),
		},
		{what: "  through rlp daemon", unit: "ms", ours: "go/daemon", against: "go/bare", floor: "bare", goal: atMost(0.25)},
		{
			what: "  through rlp daemon, against deno", unit: "ms", ours: "go/daemon", against: "go/deno", floor: "deno run",
			goal: atMost(1),
		},
		{
			what: "host call, allowed and recorded", unit: "ns", ours: "call/allowed", against: "call/empty",
			floor: "empty call", goal: atMost(1.4), peers: calls,
		},
		{
			what: "  denied and recorded", unit: "ns", ours: "call/denied", against: "call/empty", floor: "empty call",
			goal: atMost(1.4),
		},
		{
			what: "  two arguments in turn", unit: "ns", ours: "call/changing", against: "call/empty", floor: "empty call",
			goal: atMost(2.5),
		},
		{
			what: "  allowed, against Extism", unit: "ns", ours: "call/allowed", against: "call/extism", floor: "extism",
			goal: atMost(0.01),
		},
		{
			what: "stat of a file from a guest", unit: "ns", ours: "stat/rlp", against: "stat/mount", floor: "engine's mount",
			goal: atMost(1.6), peers: stats,
		},
		{what: "instance to first instruction, tiny", unit: "µs", ours: "instance/first", goal: ownAtMost(50)},
		{
			what: "instance, call and end, tiny", unit: "µs", ours: "instance/rlp", against: "instance/bare", floor: "engine",
			peers: map[column]string{"extism": "instance/extism"},
		},
		{
			what: "idle tiny agent, of 1,000 in a process", unit: "KiB", ours: "idle/rlp", against: "idle/bare", floor: "engine",
			goal: ownAtMost(100), peers: map[column]string{"extism": "idle/extism"},
		},
		{what: "idle Go agent, of 100", unit: "KiB", ours: "idle/go"},
		{
			what: "durable records, 64 writers", unit: "/s", ours: "durable/64", against: "durable/badger-64",
			floor: "badger, grouped", goal: atLeast(0.8),
		},
		{
			what: "  8 writers", unit: "/s", ours: "durable/8", against: "durable/badger-8", floor: "badger, grouped",
			goal: atLeast(0.8),
		},
		{what: "  1 writer", unit: "/s", ours: "durable/1", against: "durable/badger-1", floor: "badger", goal: atLeast(0.8)},
		{what: "log with its tree, of badger's speed, a run of 64", unit: "times", ours: "ingest/64", goal: ownAtLeast(0.8)},
		{what: "  a run of 1,000", unit: "times", ours: "ingest/1000", goal: ownAtLeast(0.8)},
		{what: "  one record at a time", unit: "times", ours: "ingest/1", goal: ownAtLeast(0.8)},
		{what: "log verified, one core (1,000,000 in 4 s)", unit: "/s", ours: "log/verified", goal: ownAtLeast(250_000)},
		{what: "one run of 1,000 records read", unit: "ms", scale: 1e-6, ours: "log/scan", goal: ownAtMost(100)},
	}
}
