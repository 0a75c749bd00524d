package export

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"runloop.dev/rlp/internal/record/audit"
)

// read decodes a request by the official types, strictly.
func read(t interface{ Fatal(...any) }, p []byte) *collector.ExportTraceServiceRequest {
	var r collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(p, &r); err != nil {
		t.Fatal(err)
	}
	if n := len(r.ProtoReflect().GetUnknown()); n > 0 {
		t.Fatal("unknown fields", n)
	}
	return &r
}

// readJSON decodes one in JSON, whose ids are in hexadecimal where protobuf's
// own JSON has base64.
func readJSON(t interface{ Fatal(...any) }, p []byte) *collector.ExportTraceServiceRequest {
	var v any
	if err := json.Unmarshal(p, &v); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				if s, ok := x.(string); ok && (k == "traceId" || k == "spanId" || k == "parentSpanId") {
					b, err := hex.DecodeString(s)
					if err != nil || strings.ToLower(s) != s {
						t.Fatal(k, s, err)
					}
					v[k] = base64.StdEncoding.EncodeToString(b)
				}
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	q, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var r collector.ExportTraceServiceRequest
	if err := protojson.Unmarshal(q, &r); err != nil { // which refuses names that it does not know
		t.Fatal(err)
	}
	return &r
}

func spansOf(r *collector.ExportTraceServiceRequest) []*trace.Span {
	var all []*trace.Span
	for _, rs := range r.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			all = append(all, ss.Spans...)
		}
	}
	return all
}

// attrsOf are the attributes of a span as text.
func attrsOf(list []*common.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range list {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			m[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			m[a.Key] = fmt.Sprint(v.IntValue)
		default:
			m[a.Key] = fmt.Sprint(v)
		}
	}
	return m
}

// Both encodings are read by the official types, and as the same.
func TestBothEncodingsAreOTLP(t *testing.T) {
	list := glances(t, example())
	binary := read(t, encode(t, OTLP, Options{Tenant: "default", Version: "0.1.0", Binary: true}, list))
	text := readJSON(t, encode(t, OTLP, Options{Tenant: "default", Version: "0.1.0"}, list))
	if !proto.Equal(binary, text) {
		t.Errorf("they differ:\n%v\n%v", binary, text)
	}
	again, err := proto.Marshal(binary)
	if err != nil || proto.Size(binary) != len(again) || len(again) == 0 {
		t.Fatal(err)
	}
	res := attrsOf(binary.ResourceSpans[0].Resource.Attributes)
	if res["service.name"] != "rlp" || res["service.namespace"] != "default" || res["service.version"] != "0.1.0" {
		t.Errorf("%v", res)
	}
}

// Each run and each call has a span: what it was, how long, how it ended, and
// whose it is.
func TestSpans(t *testing.T) {
	log := example()
	list := glances(t, log)
	spans := spansOf(read(t, encode(t, OTLP, Options{Binary: true}, list)))
	by := map[string]*trace.Span{}
	ids := map[string]bool{}
	for _, s := range spans {
		a := attrsOf(s.Attributes)
		by[a["rlp.run_id"]+a["rlp.run_seq"]] = s
		if ids[string(s.SpanId)] || len(s.TraceId) != 16 || len(s.SpanId) != 8 {
			t.Errorf("the id %x of %s", s.SpanId, s.Name)
		}
		ids[string(s.SpanId)] = true
		if s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s ends before it begins", s.Name)
		}
	}
	decisions, ends, orphans := 0, 0, 1 // one end of a call whose decision was not kept
	for _, r := range log {
		if r.Decision != nil {
			decisions++
		} else if audit.Ends(r.Event.Kind) {
			ends++
		}
	}
	if len(spans) != decisions+ends+orphans {
		t.Fatalf("%d spans of %d decisions and %d runs", len(spans), decisions, ends)
	}
	root, child := by[runA], by[runB]
	if len(root.ParentSpanId) != 0 || !bytes.Equal(child.ParentSpanId, root.SpanId) ||
		root.Name != "invoke_agent writer" ||
		hex.EncodeToString(root.TraceId) != log[0].Head.TraceID || !bytes.Equal(child.TraceId, root.TraceId) {
		t.Errorf("%v\n%v", root, child)
	}
	var names []string
	for _, e := range root.Events {
		names = append(names, e.Name+" "+attrsOf(e.Attributes)["rlp.reason"])
	}
	if !slices.Equal(names, []string{"denied host_not_permitted", "caps.swap ", "denied untrusted_context"}) {
		t.Errorf("events of the run: %q", names)
	}
	if root.Status.Code != trace.Status_STATUS_CODE_OK || child.Status.Code != trace.Status_STATUS_CODE_ERROR ||
		attrsOf(child.Attributes)["error.type"] != "killed" {
		t.Errorf("%v %v", root.Status, child.Status)
	}
	chat := by[runA+"3"]
	want := map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o",
		"rlp.target":     "openai:gpt-4o",
		"rlp.capability": "model.use", "rlp.bytes": "42",
	}
	for k, v := range want {
		if got := attrsOf(chat.Attributes)[k]; got != v {
			t.Errorf("%s of a model call is %q, not %q", k, got, v)
		}
	}
	if chat.Name != "chat gpt-4o" || chat.Kind != trace.Span_SPAN_KIND_CLIENT ||
		chat.EndTimeUnixNano-chat.StartTimeUnixNano != 812_250_000 || !bytes.Equal(chat.ParentSpanId, root.SpanId) {
		t.Errorf("%v", chat)
	}
	if s := by[runA+"5"]; s.Name != "embeddings echo" || s.Kind != trace.Span_SPAN_KIND_INTERNAL ||
		s.Status.Code != trace.Status_STATUS_CODE_ERROR {
		t.Errorf("%v", s)
	}
	if s := by[runA+"10"]; s.Name != "execute_tool list_issues" ||
		attrsOf(s.Attributes)["gen_ai.tool.name"] != "list_issues" {
		t.Errorf("%v", s)
	}
	if s := by[runA+"7"]; attrsOf(s.Attributes)["server.address"] != "api.example.com" ||
		attrsOf(s.Attributes)["server.port"] != "8443" {
		t.Errorf("%v", s)
	}
	if s := by[runA+"9"]; s.Status.Code != trace.Status_STATUS_CODE_ERROR ||
		attrsOf(s.Attributes)["rlp.layer"] != "override:writer.toml" {
		t.Errorf("%v", s)
	}
}

// However an export is cut into pieces, and wherever it begins again, it sends
// the spans that it sends at once, each once, with the same ids.
func TestPiecesAreTheWhole(t *testing.T) {
	list := glances(t, example())
	whole := spansOf(read(t, encode(t, OTLP, Options{Binary: true}, list)))
	rapid.Check(t, func(t *rapid.T) {
		var got []*trace.Span
		for at := 0; at < len(list); {
			n := rapid.IntRange(1, len(list)-at).Draw(t, "records")
			enc, err := New(OTLP, Options{Binary: true, Past: pastOf(list)}) // as after a kill
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range list[at : at+n] {
				if _, err := enc.Append(nil, g); err != nil {
					t.Fatal(err)
				}
			}
			got = append(got, spansOf(read(t, enc.Flush(nil)))...)
			at += n
		}
		if len(got) != len(whole) {
			t.Fatalf("%d spans, not %d", len(got), len(whole))
		}
		for i := range got {
			if !proto.Equal(got[i], whole[i]) {
				t.Fatalf("span %d is\n%v, not\n%v", i, got[i], whole[i])
			}
		}
	})
}

// Filters of decisions leave out calls, and never the run that the others are of.
func TestOnlySomeCalls(t *testing.T) {
	only := func(r *audit.Record) bool { return r.Denied() }
	spans := spansOf(read(t, encode(t, OTLP, Options{Binary: true, Only: only}, glances(t, example()))))
	runs, calls := 0, 0
	for _, s := range spans {
		if strings.HasPrefix(s.Name, "invoke_agent") {
			runs++
			continue
		}
		calls++
		if attrsOf(s.Attributes)["rlp.decision"] != "deny" {
			t.Errorf("%v", s)
		}
	}
	if runs != 3 || calls != 2 {
		t.Errorf("%d runs, %d calls", runs, calls)
	}
}

// A run with more events than a span may have says how many it leaves out, and
// more open calls than are remembered are sent without their end.
func TestSpansAreBounded(t *testing.T) {
	log := example()
	var many []audit.Record
	add := func(d *audit.DecisionRecord, e *audit.Event) {
		r := log[0]
		r.Seq, r.RunSeq = uint64(len(many)+1), uint64(len(many)+1)
		r.Decision, r.Event = d, e
		many = append(many, r)
	}
	for range maxEvents + 5 {
		add(&audit.DecisionRecord{Cap: "net.http", Op: "net_http", Deny: true, Reason: "host_not_permitted"}, nil)
	}
	for i := range 2 * maxPending {
		add(&audit.DecisionRecord{Cap: "net.http", Op: fmt.Sprint("op", i)}, nil)
	}
	add(nil, &audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"})
	enc, err := New(OTLP, Options{Binary: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range glances(t, many) {
		if _, err := enc.Append(nil, g); err != nil {
			t.Fatal(err)
		}
		if run := enc.(*tracer).runs[runA]; run != nil && len(run.pending) > maxPending {
			t.Fatalf("%d calls are remembered", len(run.pending))
		}
	}
	if n := len(enc.(*tracer).runs); n != 0 {
		t.Errorf("%d runs are remembered though they ended", n)
	}
	spans := spansOf(read(t, enc.Flush(nil)))
	root := spans[len(spans)-1]
	if len(spans) != len(many) || len(root.Events) != maxEvents || root.DroppedEventsCount != 5 {
		t.Errorf("%d spans of %d, %d events and %d", len(spans), len(many), len(root.Events), root.DroppedEventsCount)
	}
}

// readLines decodes the requests of a file as one.
func readLines(t interface{ Fatal(...any) }, p []byte) *collector.ExportTraceServiceRequest {
	all := new(collector.ExportTraceServiceRequest)
	for line := range bytes.Lines(p) {
		all.ResourceSpans = append(all.ResourceSpans, readJSON(t, line).ResourceSpans...)
	}
	return all
}
