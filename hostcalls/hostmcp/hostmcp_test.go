package hostmcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/hostcalls"
)

// A caller answers calls, and keeps them.
type caller struct {
	calls  [][]string
	answer func(ctx context.Context, name string) ([]byte, error)
}

func (c *caller) Call(ctx context.Context, name string, args ...string) ([]byte, error) {
	c.calls = append(c.calls, append([]string{name}, args...))
	return c.answer(ctx, name)
}

func serve(t *testing.T, answer func(ctx context.Context, name string) ([]byte, error)) (*caller, *httptest.Server) {
	t.Helper()
	c := &caller{answer: answer}
	s := httptest.NewServer(New(c))
	t.Cleanup(s.Close)
	return c, s
}

func connect(t *testing.T, s *httptest.Server) *mcp.ClientSession {
	t.Helper()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp", MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// The tools are imports, each with the arguments that it takes.
func TestTools(t *testing.T) {
	_, s := serve(t, nil)
	list, err := connect(t, s).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string]int{}
	for _, f := range hostcalls.Signatures() {
		imports[f.Name] = len(f.Params)/2 - 1
	}
	var names []string
	for _, offered := range list.Tools {
		names = append(names, offered.Name)
		i := slices.IndexFunc(tools(), func(x tool) bool { return x.name == offered.Name })
		x := tools()[i]
		n := len(x.params)
		if x.whole != nil {
			n++
		}
		if want, is := imports[offered.Name]; !is || n != want {
			t.Errorf("%s has %d arguments, the import %d", offered.Name, n, want)
		}
	}
	if want := []string{
		"agent_launch", "kb_cas", "kb_delete", "kb_get", "kb_list", "kb_put", "kb_search", "log", "result", "time_now",
	}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
}

// Values that are no text go both ways in base64; what a call is told is passed on.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		tool, arguments string
		resp            string
		err             error
		calls           []string
		text            string
		failed          bool
		encoding        string
	}{
		{"kb_get", `{"domain":"n","key":"k"}`, "text", nil, []string{"kb_get", "n", "k"}, "text", false, ""},
		{"kb_get", `{"domain":"n","key":"k"}`, "\xff\x00", nil, []string{"kb_get", "n", "k"}, "/wA=", false, "base64"},
		{
			"kb_get", `{"domain":"n","key":"k","encoding":"base64"}`, "text", nil,
			[]string{"kb_get", "n", "k"},
			"dGV4dA==",
			false, "base64",
		},
		{
			"kb_put", `{"domain":"n","key":"k","value":"/wA=","encoding":"base64"}`, "1", nil,
			[]string{"kb_put", "n", "k", "\xff\x00"},
			"MQ==", false, "base64",
		},
		{"kb_put", `{"domain":"n","key":"k","value":"a/b","encoding":"base64"}`, "", nil, nil, "no base64", true, ""},
		{"kb_put", `{"domain":"n","key":"k","value":"v","encoding":"hex"}`, "", nil, nil, "utf-8 or base64", true, ""},
		{"kb_put", `{"domain":"n","key":"k","value":7}`, "", nil, nil, "value", true, ""},
		{"kb_put", `{"domain":"n","key":"k","value":"v","more":1}`, "", nil, nil, "no argument of kb_put", true, ""},
		{"kb_list", `{}`, "[]", nil, []string{"kb_list", "", ""}, "[]", false, ""},
		{
			"kb_search", `{"text":"a","domain":"n","k":3}`, "[]", nil,
			[]string{"kb_search", "n", `{"text":"a","k":3}`},
			"[]",
			false, "",
		},
		{
			"agent_launch", `{"agent":"critic","input":{"a":[1,2]}}`, "{}", nil,
			[]string{"agent_launch", `{"agent":"critic","input":{"a":[1,2]}}`},
			"{}", false, "",
		},
		{"result", `{"value":{"a":[1.0]}}`, "", nil, []string{"result", `{"a":[1.0]}`}, "", false, ""},
		{"time_now", ``, "18", nil, []string{"time_now"}, "18", false, ""},
		{
			"log", `{"level":"info","message":"x"}`, "", &hostcalls.Answer{Errno: "inval", Reason: "invalid_request", Hint: "so"},
			[]string{"log", "info", "x"},
			`{"error":"inval","capability":"","reason":"invalid_request","hint":"so"}`, true, "",
		},
	} {
		made, s := serve(t, func(context.Context, string) ([]byte, error) { return []byte(c.resp), c.err })
		params := &mcp.CallToolParams{Name: c.tool}
		if c.arguments != "" {
			params.Arguments = json.RawMessage(c.arguments)
		}
		got, err := connect(t, s).CallTool(t.Context(), params)
		if err != nil {
			t.Errorf("%s %s: %v", c.tool, c.arguments, err)
			continue
		}
		text := got.Content[0].(*mcp.TextContent).Text
		if text != c.text && !(c.calls == nil && strings.Contains(text, c.text)) || got.IsError != c.failed {
			t.Errorf("%s %s: %v %s", c.tool, c.arguments, got.IsError, text)
		}
		var encoding string
		if m, is := got.StructuredContent.(map[string]any); is {
			encoding, _ = m["encoding"].(string)
		}
		var want [][]string
		if c.calls != nil {
			want = [][]string{c.calls}
		}
		if encoding != c.encoding || !reflect.DeepEqual(made.calls, want) {
			t.Errorf("%s %s: %q, called %q", c.tool, c.arguments, encoding, made.calls)
		}
	}
}

// post sends a message as it is.
func post(t *testing.T, ctx context.Context, s *httptest.Server, path, message string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", s.URL+path, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

const putting = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log",` +
	`"arguments":{"level":"info","message":"x"}}}`

// What readers could take in two ways reaches no call; the control is the same without.
func TestMessagesAreReadStrictly(t *testing.T) {
	c, s := serve(t, func(context.Context, string) ([]byte, error) { return nil, nil })
	for message, want := range map[string]int{
		strings.Replace(putting, `"level":"info"`, `"level":"info","level":"error"`, 1): 400,
		putting + "{}": 400,
		strings.Replace(putting, `"x"`, "\"\xff\"", 1): 400,
		"[" + putting:                       400,
		strings.Repeat(" ", MaxBody) + "{}": 413,
	} {
		if got, text := post(t, t.Context(), s, "/mcp", message); got != want {
			t.Errorf("%.100q: %d %s", message, got, text)
		}
	}
	if got, _ := post(t, t.Context(), s, "/other", putting); got != 404 || c.calls != nil {
		t.Errorf("%d, called %q", got, c.calls)
	}
	if got, text := post(t, t.Context(), s, "/mcp", putting); got != 200 || len(c.calls) != 1 {
		t.Errorf("control: %d %s", got, text)
	}
}

// A client that goes ends what it asked for, and no answer is later than the request
// that it is of. Agents are launched one at a time, and what waits for its turn goes too.
func TestClientsThatGo(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error)
	c, s := serve(t, func(ctx context.Context, _ string) ([]byte, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	const launching = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_launch",` +
		`"arguments":{"agent":"critic"}}}`
	first, stop := context.WithCancel(t.Context())
	second, leave := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	go func() { _, _ = post(t, first, s, "/mcp", launching); done <- struct{}{} }()
	<-began
	go func() { _, _ = post(t, second, s, "/mcp", launching); done <- struct{}{} }()
	leave()
	<-done
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-done
	s.Close() // which waits for requests
	if len(c.calls) != 1 {
		t.Errorf("called %q", c.calls)
	}
}

// What breaks in the host is the end of a call and of nothing else.
func TestAHostThatBreaks(t *testing.T) {
	for _, answer := range []func(context.Context, string) ([]byte, error){
		func(context.Context, string) ([]byte, error) { panic("at /secret/path") },
		func(context.Context, string) ([]byte, error) { return nil, errors.New("at /secret/path") },
	} {
		_, s := serve(t, answer)
		for range 2 {
			if got, text := post(t, t.Context(), s, "/mcp", putting); got != 200 || strings.Contains(text, "/secret") ||
				!strings.Contains(text, "rror") {
				t.Errorf("%d %s", got, text)
			}
		}
	}
}
