package export

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/record/audit"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

const (
	runA = "0198d2c4-7f1e-7000-8000-00000000000a"
	runB = "0198d2c4-7f1e-7000-8000-00000000000b"
)

// example is a log with every kind of record in it: a run that launches
// another, calls of all families, denials, a change of what it holds, a run
// that was refused and one that was killed.
func example() []audit.Record {
	var log []audit.Record
	seqs := map[string]uint64{}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	add := func(run, agent, parent string, d *audit.DecisionRecord, e *audit.Event) {
		seqs[run]++
		at = at.Add(7 * time.Millisecond)
		log = append(log, audit.Record{
			Seq: uint64(len(log) + 1), RunSeq: seqs[run], Time: at, Kept: true, Decision: d, Event: e,
			Head: audit.Head{
				RunID: run, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Tenant: "default", Agent: agent, ParentRun: parent,
				BundleDigest: strings.Repeat("ab", 32), EffectiveDigest: strings.Repeat("cd", 32),
			},
		})
	}
	allow := func(capability, op, target string) *audit.DecisionRecord {
		return &audit.DecisionRecord{Cap: capability, Op: op, Target: target, ArgsHash: [32]byte{1, 31: 2}, Reason: "granted"}
	}
	deny := func(capability, op, target, reason, layer string) *audit.DecisionRecord {
		return &audit.DecisionRecord{
			Cap: capability, Op: op, Target: target, Deny: true, Severity: audit.Warn,
			Reason: reason, Layer: layer,
		}
	}
	done := func(verb string, ms float64) *audit.Event {
		return &audit.Event{
			Kind: audit.KindCallDone, Verb: verb, Status: "ok", DurationMS: ms, Bytes: 42,
			ResultHash: strings.Repeat("ef", 32),
		}
	}
	a := func(d *audit.DecisionRecord, e *audit.Event) { add(runA, "writer", "", d, e) }
	b := func(d *audit.DecisionRecord, e *audit.Event) { add(runB, "critic", runA, d, e) }
	a(nil, &audit.Event{
		Kind: audit.KindRunStart, Base: []string{"fs:read:/data", "network:https:api.example.com"},
		Effective: []string{"fs:read:/data"}, PolicyPresent: true,
		LimitsSummary: map[string]int64{"wall_time_ms": 300000}, Layers: []audit.Layer{{Name: "override:writer.toml"}},
	})
	a(allow("fs.read", "path_open", "/data/=1+1.md"), nil)
	a(allow("model.use", "model_complete", "openai:gpt-4o"), nil)
	a(nil, done("model_complete", 812.25))
	a(allow("model.use", "model_embed", "local:echo"), nil)
	a(nil, &audit.Event{
		Kind: audit.KindCallDone, Severity: audit.Warn, Verb: "model_embed", Status: "error",
		DurationMS: 3, ErrorSummary: "no \"vectors\",\nhere",
	})
	a(allow("net.http", "net_http", "https://api.example.com:8443/send"), nil)
	a(nil, done("net_http", 20))
	a(deny("net.http", "net_http", "https://evil.example/", "host_not_permitted", "override:writer.toml"), nil)
	a(allow("mcp.call", "mcp_call", "github/list_issues"), nil)
	a(nil, done("mcp_call", 5))
	a(nil, &audit.Event{Kind: audit.KindCapsSwap, Source: "taint", Label: "@evil.example", Before: strings.Repeat("cd",
		32), After: strings.Repeat("ce", 32)})
	a(deny("kb.write", "kb_put", "drafts/=cmd|' /C calc'!A0", "untrusted_context", "_untrusted"), nil)
	a(allow("agent.launch", "agent_launch", "critic"), nil)
	b(nil, &audit.Event{Kind: audit.KindRunStart})
	b(allow("exec.spawn", "exec_run", "/usr/bin/grep"), nil)
	b(nil, done("exec_run", 12))
	b(allow("kb.read", "kb_get", "notes/\xff-café"), nil)
	b(nil, &audit.Event{
		Kind: audit.KindRunFailed, Severity: audit.Error, Outcome: "killed", ExitCode: 1, Reason: "killed",
		Message: "the process ended without a last record",
	})
	a(nil, done("agent_launch", 60))
	a(allow("kb.write", "kb_delete", "drafts/a"), nil)
	a(nil, done("kb_delete", 1))
	a(nil, done("secret_handle", 0.5)) // its decision was not kept
	a(nil, &audit.Event{Kind: audit.KindRunComplete, Outcome: "ok", Usage: map[string]int64{"wall_ms": 1234, "fuel": 99}})
	add("0198d2c4-7f1e-7000-8000-00000000000c", "mailer", "", nil, &audit.Event{
		Kind: audit.KindPolicyRejected, Severity: audit.Error, Outcome: "refused", ExitCode: 77, Reason: "cap_missing",
		Message: "refused", Violations: []string{"net"},
	})
	return log
}

// glances are records as they come out of a store.
func glances(t testing.TB, log []audit.Record) []*audit.Glance {
	t.Helper()
	codec, err := audit.NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	var out []*audit.Glance
	for i := range log {
		p, err := codec.Encode(&log[i])
		if err != nil {
			t.Fatal(err)
		}
		g := new(audit.Glance)
		if err := g.Read(p); err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}

func sequence(list []*audit.Glance) iter.Seq2[*audit.Glance, error] {
	return func(yield func(*audit.Glance, error) bool) {
		for _, g := range list {
			if !yield(g, nil) {
				return
			}
		}
	}
}

// pastOf is what a store answers of a run.
func pastOf(list []*audit.Glance) func(string) iter.Seq2[*audit.Glance, error] {
	return func(run string) iter.Seq2[*audit.Glance, error] {
		var of []*audit.Glance
		for _, g := range list {
			if string(g.Run) == run {
				of = append(of, g)
			}
		}
		return sequence(of)
	}
}

func encode(t testing.TB, f Format, o Options, list []*audit.Glance) []byte {
	t.Helper()
	enc, err := New(f, o)
	if err != nil {
		t.Fatal(err)
	}
	out := enc.Head()
	for _, g := range list {
		if out, err = enc.Append(out, g); err != nil {
			t.Fatal(err)
		}
	}
	return enc.Flush(out)
}

// Each format of the same records is the same bytes for ever.
func TestGolden(t *testing.T) {
	for _, f := range Formats() {
		got := encode(t, f, Options{Tenant: "default", Version: "0.1.0"}, glances(t, example()))
		path := filepath.Join("testdata", "every."+string(f))
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not %s; if that is meant it is another version of the format", f, path)
		}
	}
}

// A line of JSONL, without its end, is the record's exported form to the byte,
// so that sha256(0x00 || line) is its leaf in the log's tree.
func TestLinesAreLeaves(t *testing.T) {
	log := example()
	lines := strings.SplitAfter(string(encode(t, JSONL, Options{}, glances(t, log))), "\n")
	if len(lines) != len(log)+1 {
		t.Fatalf("%d lines of %d records", len(lines)-1, len(log))
	}
	for i := range log {
		want, err := log[i].AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		if lines[i] != string(want)+"\n" {
			t.Errorf("line %d is %s", i, lines[i])
		}
	}
	first := sha256.Sum256(append([]byte{0}, strings.TrimSuffix(lines[0], "\n")...))
	if got, want := fmt.Sprintf("%x", first), leafOfFirst; got != want {
		t.Errorf("the first leaf is %s", got)
	}
}

// leafOfFirst is what (printf '\0'; head -1 testdata/every.jsonl | tr -d '\n') | sha256sum says.
const leafOfFirst = "b20e234082256993f0deb905124dd3e85c215c66eeffd4869af9d69f51931fdb"
