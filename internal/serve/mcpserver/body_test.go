package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"runloop.dev/rlp/internal/base/strictjson/jsontest"
	"runloop.dev/rlp/internal/serve/mcpserver"
	"runloop.dev/rlp/internal/serve/service"
)

// A spoken session is one over HTTP whose messages a test writes itself.
type spoken struct {
	b      *bench
	t      *testing.T
	id     string
	header string // the version that its requests name; "": none
}

// post sends a message, and returns the status and the body of the answer.
func (s *spoken) post(message string) (int, string) {
	s.t.Helper()
	r := httptest.NewRequestWithContext(service.WithCaller(s.t.Context(), &service.Caller{
		Name: "user:1", Tenant: "acme",
		May: all,
	}), http.MethodPost, "/mcp", strings.NewReader(message))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range map[string]string{"Mcp-Session-Id": s.id, "Mcp-Protocol-Version": s.header} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	s.b.server.ServeHTTP(w, r)
	if id := w.Header().Get("Mcp-Session-Id"); id != "" {
		s.id = id
	}
	return w.Code, w.Body.String()
}

// speak begins a session in a version of the protocol.
func speak(t *testing.T, b *bench, version string) *spoken {
	t.Helper()
	s := &spoken{b: b, t: t}
	status, said := s.post(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if status != http.StatusOK || s.id == "" || !strings.Contains(said, `"protocolVersion":"`+version+`"`) {
		t.Fatalf("no session of %s: %d %s", version, status, said)
	}
	if status, said := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, said)
	}
	return s
}

// listOf is a list of n requests.
func listOf(n int, method string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"name":"slow","arguments":{}}}`, i, method)
	}
	return "[" + strings.Join(list, ",") + "]"
}

// A list of messages is taken in sessions of the version that has lists, whatever
// its requests name in a header, and has few elements; elsewhere nothing of it is
// answered.
func TestListsOfMessages(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	for _, c := range []struct {
		version, header string
		n, status, told int
	}{
		{"2025-03-26", "", 16, http.StatusOK, 16}, // the control: as the SDK takes any number of them
		{"2025-03-26", "2025-03-26", 2, http.StatusOK, 2},
		{"2025-03-26", "", 17, http.StatusBadRequest, 0},
		{"2025-03-26", "", 0, http.StatusBadRequest, 0},
		{"2025-06-18", "", 1, http.StatusBadRequest, 0},
		{"2025-06-18", "2025-03-26", 2, http.StatusBadRequest, 0},
		{"2025-11-25", "", 60_000, http.StatusBadRequest, 0},
		{"2025-11-25", "2025-11-25", 2, http.StatusBadRequest, 0},
		{"2024-11-05", "", 2, http.StatusBadRequest, 0},
	} {
		s := speak(t, b, c.version)
		s.header = c.header
		status, said := s.post(listOf(c.n, "tools/list"))
		if told := strings.Count(said, `"rlp_runs"`); status != c.status || told != c.told {
			t.Errorf("%d elements, session of %s, header %q: %d with %d answers: %.200s", c.n, c.version, c.header, status, told,
				said)
		}
		if status, said := s.post(`{"jsonrpc":"2.0","id":"one","method":"tools/list"}`); status != http.StatusOK ||
			!strings.Contains(said, `"rlp_runs"`) {
			t.Errorf("control: one message by itself: %d %.200s", status, said)
		}
	}
	if status, said := (&spoken{b: b, t: t}).post(listOf(2, "tools/list")); status != http.StatusBadRequest {
		t.Errorf("without a session: %d %.200s", status, said)
	}
	if status, said := (&spoken{b: b, t: t, header: modern}).post(listOf(2,
		"tools/list")); status != http.StatusBadRequest {
		t.Errorf("in the version without sessions: %d %.200s", status, said)
	}
	other := speak(t, b, "2025-03-26")
	other.id += "x" // what is not its own says nothing of a version
	if status, said := other.post(listOf(2, "tools/list")); status != http.StatusBadRequest {
		t.Errorf("in a session that there is not: %d %.200s", status, said)
	}
}

// Each element of a list is a request in its caller's share.
func TestElementsAreRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, mcpserver.Options{Requests: 32}) // eight of them a caller
		s := speak(t, b, "2025-03-26")
		if status, said := s.post(listOf(9, "tools/list")); status != http.StatusServiceUnavailable {
			t.Errorf("nine at once: %d %.200s", status, said)
		}
		over := make(chan struct{})
		go func() { defer close(over); s.post(listOf(7, "tools/call")) }()
		synctest.Wait() // seven runs of slow are under way
		second := &spoken{b: b, t: t, id: s.id}
		if status, said := second.post(`[{"jsonrpc":"2.0","id":"a","method":"tools/list"},{"jsonrpc":"2.0","id":"b","method":"tools/list"}]`); status != http.StatusServiceUnavailable {
			t.Errorf("two more: %d %.200s", status, said)
		}
		if status, said := second.post(`{"jsonrpc":"2.0","id":"c","method":"tools/list"}`); status != http.StatusOK {
			t.Errorf("one more: %d %.200s", status, said)
		}
		for _, run := range b.service.Runs(t.Context(), caller("acme", all)) {
			if err := b.service.Cancel(t.Context(), caller("acme", all), run.RunID); err != nil {
				t.Error(err)
			}
		}
		<-over
		b.server.Close()
	})
}

// A message has each key once, wherever: two readers would take different ones.
func TestMessagesHaveEachKeyOnce(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	s := speak(t, b, "2025-03-26")
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`
	if status, said := s.post(call); status != http.StatusOK || !strings.Contains(said, "runloop.dev/run_id") {
		t.Fatalf("control: %d %s", status, said)
	}
	before := len(b.host.inputs)
	for twice, place := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"echo","arguments":{}}}`:    "method",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","name":"echo","arguments":{}}}`:      "params.name",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","n\u0061me":"echo","arguments":{}}}`: "params.name",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":{"b":1,"b":2}}}}`:   "params.arguments.a.b",
		`[{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"echo","arguments":{}}}]`:           "[0].id",
		call + call:     "behind the end",
		"\ufeff" + call: "byte order mark",
		`7`:             "an object is wanted",
		`{"jsonrpc"`:    "ends too early",
	} {
		if status, said := s.post(twice); status != http.StatusBadRequest || !strings.Contains(said, place) {
			t.Errorf("%s: %d %s", twice, status, said)
		}
	}
	if n := len(b.host.inputs); n != before {
		t.Errorf("%d of them ran", n-before)
	}
	for name, body := range map[string]io.Reader{
		"too long": strings.NewReader(strings.Repeat(" ", 9<<20)),
		"cut off":  cutOff{},
	} {
		r := httptest.NewRequestWithContext(service.WithCaller(t.Context(), caller("acme", all)), http.MethodPost, "/mcp",
			body)
		w := httptest.NewRecorder()
		if b.server.ServeHTTP(w, r); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Over stdio the same holds: what may not be taken ends the session, and nothing
// of it is done.
func TestMessagesOfAStreamAreReadStrictly(t *testing.T) {
	greeting := func(version string) string { return strings.ReplaceAll(hello, legacy, version) }
	for name, c := range map[string]struct {
		version, message string
		taken            bool
	}{
		"one":                       {"2025-06-18", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, true},
		"a list":                    {"2025-03-26", listOf(3, "tools/list"), true},
		"a list that is too long":   {"2025-03-26", listOf(17, "tools/list"), false},
		"a list that there is not":  {"2025-06-18", listOf(1, "tools/list"), false},
		"a list before any version": {"", listOf(1, "tools/list"), false},
		"a key twice":               {"2025-06-18", `{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/list"}`, false},
		"too long": {"2025-06-18", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"` +
			strings.Repeat("x", 8<<20) + `"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, mcpserver.Options{})
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			over := make(chan error, 1)
			go func() {
				err := b.server.Serve(t.Context(), caller("acme", all), inR, outW)
				outW.Close()
				inR.Close()
				over <- err
			}()
			answers := json.NewDecoder(outR)
			var first, second json.RawMessage
			if c.version != "" {
				_, _ = io.WriteString(inW, greeting(c.version)+"\n")
				if err := answers.Decode(&first); err != nil || !strings.Contains(string(first), c.version) {
					t.Fatalf("%s %v", first, err)
				}
				_, _ = io.WriteString(inW, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
			}
			go func() { _, _ = io.WriteString(inW, c.message+"\n") }() // it may not be read to its end
			err := answers.Decode(&second)
			for err == nil && strings.Contains(string(second), "list_changed") {
				err = answers.Decode(&second)
			}
			if taken := err == nil && strings.Contains(string(second), "rlp_runs"); taken != c.taken {
				t.Errorf("taken is %t: %.300s %v", taken, second, err)
			}
			inW.Close()
			if err := <-over; (err == nil) != c.taken {
				t.Errorf("serving ended with %v", err)
			}
		})
	}
}

// What is wrong with a message is told in words of the protocol, and nothing is said
// of what reads it. Controls: a message that is right is answered, and a tool says
// itself what is wrong with its arguments.
func TestMessagesOfOtherKinds(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	s := speak(t, b, "2025-03-26")
	for message, why := range map[string]string{
		`7`:                                    "the message: an object is wanted",
		`[[1]]`:                                "[0]: an object is wanted",
		`[{}, [7]]`:                            `[0]: jsonrpc: must be "2.0"`,
		`[[[[[{}]]]]]`:                         "[0]: an object is wanted",
		`{"jsonrpc":2,"id":1,"method":"ping"}`: "jsonrpc: a text is wanted",
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                                                             "id: a text or a number is wanted",
		`{"jsonrpc":"2.0","id":1,"method":[]}`:                                                                  "method: a text is wanted",
		`{"jsonrpc":"2.0","id":1,"error":7}`:                                                                    "error: an object is wanted",
		`{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}`:                                                         "error.code: a number is wanted",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":7}`:                                             "params: an object is wanted",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`:                                    "params.name: a text is wanted",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":7}}`:                     "params._meta: an object is wanted",
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":7}}`:                                  "params.cursor: a text is wanted",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}`:                                            "params: an object is wanted",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"roots":7}}}`:                  "an object is wanted",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rlp_runs","arguments":{"limit":"x"}}}`: "a number is wanted",
	} {
		if _, said := s.post(message); !strings.Contains(said, why) || strings.Contains(said, "Go ") ||
			strings.Contains(said, "mcp.") || strings.Contains(said, "wireDecode") {
			t.Errorf("%s: %s", message, said)
		}
	}
	if status, said := s.post(`[{"jsonrpc":"2.0","id":"a","method":"tools/list"}]`); status != http.StatusOK ||
		!strings.Contains(said, `"rlp_runs"`) {
		t.Errorf("control: %d %.200s", status, said)
	}
}

// What is wrong with parameters is told over stdio in the same words, and the session
// goes on.
func TestParametersOfAStream(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	for message, why := range map[string]string{
		`"method":"tools/call","params":[1]`:                           "params: an object is wanted",
		`"method":"tools/call","params":{"name":7}`:                    "params.name: a text is wanted",
		`"method":"tools/call","params":{"name":"slow","_meta":7}`:     "params._meta: an object is wanted",
		`"method":"tools/call","params":{"name":"nope"}`:               "params.name: there is no tool nope; tools/list",
		`"method":"tools/call","params":{}`:                            "params.name: there is no tool",
		`"method":"tools/list","params":{"cursor":7}`:                  "params.cursor: a text is wanted",
		`"method":"logging/setLevel","params":{"level":7}`:             "params.level: a text is wanted",
		`"method":"tools/list","params":{"cursor":"7"}`:                "params.cursor: must be nextCursor",
		`"method":"prompts/get","params":{"_meta":"x","name":"a"}`:     "params._meta: an object is wanted",
		`"method":"completion/complete","params":"x"`:                  "params: an object is wanted",
		`"method":"subscriptions/listen","params":{"_meta":[true]}`:    "params._meta: an object is wanted",
		`"method":"tools/list","params":{"_meta":{"progressToken":1}}`: "rlp_runs",
	} {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		over := make(chan error, 1)
		go func() {
			over <- b.server.Serve(t.Context(), caller("acme", all), inR, outW)
		}()
		answers := json.NewDecoder(outR)
		_, _ = io.WriteString(inW, strings.ReplaceAll(hello, legacy, "2025-06-18")+"\n")
		_, _ = io.WriteString(inW, `{"jsonrpc":"2.0","method":"notifications/initialized","params":{"_meta":7}}`+"\n")
		for id, sent := range []string{message, `"method":"ping"`} {
			_, _ = fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":%d,%s}`+"\n", 100+id, sent)
			var said json.RawMessage
			for !strings.Contains(string(said), fmt.Sprint(`"id":`, 100+id)) {
				if err := answers.Decode(&said); err != nil {
					t.Fatal(err)
				}
			}
			if id == 0 && !strings.Contains(string(said), why) || strings.Contains(string(said), "Go ") ||
				strings.Contains(string(said), "mcp.") {
				t.Errorf("%s: %.300s", message, said)
			}
		}
		inW.Close()
		go func() { _, _ = io.Copy(io.Discard, outR) }() // what it says last
		if err := <-over; err != nil {
			t.Errorf("%s: serving ended with %v", message, err)
		}
	}
}

// What no reader takes is no message, and no argument in one. Control: the good one
// is answered.
func TestNoMessageIsReadTwoWays(t *testing.T) {
	s := speak(t, newBench(t, mcpserver.Options{}), "2025-03-26")
	bad, good := jsontest.Documents(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":%s}}}`)
	if status, said := s.post(good); status != http.StatusOK || !strings.Contains(said, "runloop.dev/run_id") {
		t.Errorf("control: %d %s", status, said)
	}
	for name, message := range bad {
		if status, said := s.post(message); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, status, said)
		}
	}
}
