package mcpclient_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/effect/mcpclient"
	"runloop.dev/rlp/internal/effect/mcpclient/mcptest"
)

// good is a session with a server of the kind over pipes.
func good(t *testing.T, kind string) *mcpclient.Session {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() {
		_ = mcptest.New(kind).Run(context.Background(), &mcp.IOTransport{Reader: inR, Writer: outW})
		_ = outW.Close()
	}()
	return connected(t, mcpclient.Stdio(inW, outR))
}

func connected(t *testing.T, way mcpclient.Transport) *mcpclient.Session {
	t.Helper()
	s, err := mcpclient.Connect(t.Context(), way)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// direct sends without any guard.
type direct struct{}

func (direct) Send(r *http.Request, _ bool) (*http.Response, error) {
	return http.DefaultTransport.RoundTrip(r)
}

// overHTTP is a session with a server of the kind at a URL; heard has each
// request that it got.
func overHTTP(t *testing.T, kind, bearer string, heard func(*http.Request)) *mcpclient.Session {
	t.Helper()
	handler := mcptest.Handler(kind)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if heard != nil {
			heard(r)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return connected(t, mcpclient.HTTP(srv.URL, bearer, direct{}))
}

func both(t *testing.T, kind string, test func(t *testing.T, s *mcpclient.Session)) {
	t.Run("stdio", func(t *testing.T) { test(t, good(t, kind)) })
	t.Run("http", func(t *testing.T) { test(t, overHTTP(t, kind, "", nil)) })
}

func TestToolsAreListedAndCalled(t *testing.T) {
	both(t, "good", func(t *testing.T, s *mcpclient.Session) {
		list, err := s.Tools(t.Context())
		if err != nil || len(list) != 9 || list[1].Name != "echo" ||
			string(list[1].Schema) != `{"properties":{"text":{"type":"string"}},"type":"object"}` {
			t.Fatalf("%v %v", list, err)
		}
		got, err := s.Call(t.Context(), "echo", json.RawMessage(`{"text":"é\u0001"}`))
		if want := `{"content":[{"type":"text","text":"{\"text\":\"é\\u0001\"}"}],"isError":false}`; err != nil ||
			string(got) != want {
			t.Errorf("%s %v\nwant %s", got, err, want)
		}
		got, err = s.Call(t.Context(), "fails", json.RawMessage(`{}`))
		if want := `{"content":[{"type":"text","text":"it went wrong"}],"structuredContent":{"n":1},"isError":true}`; err != nil || string(got) != want {
			t.Errorf("%s %v", got, err)
		}
		var remote *mcpclient.RemoteError
		if _, err = s.Call(t.Context(), "nothing", json.RawMessage(`{}`)); !errors.As(err, &remote) ||
			!strings.Contains(remote.Message, "nothing") {
			t.Errorf("%v", err)
		}
	})
}

func TestTheBearerGoesWithEveryRequest(t *testing.T) {
	n := 0
	s := overHTTP(t, "good", "token-of-mine", func(r *http.Request) {
		if n++; r.Header.Get("Authorization") != "Bearer token-of-mine" {
			t.Errorf("%s has %q", r.Method, r.Header.Get("Authorization"))
		}
	})
	if _, err := s.Call(t.Context(), "echo", nil); err != nil || n < 3 {
		t.Errorf("%v after %d requests", err, n)
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	var way *mcpclient.WayError
	if _, err := mcpclient.Connect(t.Context(), mcpclient.HTTP(srv.URL, "", direct{})); !errors.As(err, &way) {
		t.Errorf("%v", err)
	}
}

// Another URL is another server, and gets no token of this one.
func TestNoRedirectIsFollowed(t *testing.T) {
	handler := mcptest.Handler("good")
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request,
	) {
		asked = true
		handler.ServeHTTP(w, r)
	}))
	defer other.Close()
	srv := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer srv.Close()
	way := mcpclient.HTTP(srv.URL, "token-of-mine", direct{})
	if _, err := mcpclient.Connect(t.Context(), way); err == nil || asked {
		t.Errorf("%v, asked %v", err, asked)
	}
	connected(t, mcpclient.HTTP(other.URL, "", direct{})) // control
	if !asked {
		t.Error("control: nobody asked")
	}
}

// What a server says of its tools has one digest, whatever the order in which
// it says so, and another one when any of it is another.
func TestDigests(t *testing.T) {
	digest := func(kind string) string {
		list, err := good(t, kind).Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return mcpclient.Digest(list)
	}
	one := digest("good")
	if again := digest("good"); again != one || !strings.HasPrefix(one, "sha256:") {
		t.Errorf("%s and %s", one, again)
	}
	for _, kind := range []string{"changed", "more"} {
		if digest(kind) == one {
			t.Errorf("%s: the same", kind)
		}
	}
	tool := mcpclient.Tool{Name: "a", Description: "b", Schema: json.RawMessage(`{}`)}
	for _, other := range []mcpclient.Tool{
		{"ab", "", tool.Schema},
		{"a", "b{}", nil},
		{"a", "b", json.RawMessage(`{"x":1}`)},
	} {
		if mcpclient.Digest([]mcpclient.Tool{tool}) == mcpclient.Digest([]mcpclient.Tool{other}) {
			t.Errorf("%+v is the same as %+v", other, tool)
		}
	}
}

func TestAServerSaysThatItsToolsAreOthers(t *testing.T) {
	s := good(t, "rugpull")
	before, err := s.Tools(t.Context())
	if err != nil || s.Changed() {
		t.Fatal(err)
	}
	if _, err := s.Call(t.Context(), "given", nil); err != nil {
		t.Fatal(err)
	}
	if !s.Changed() {
		t.Error("it was said before the answer")
	}
	after, err := s.Tools(t.Context())
	if err != nil || mcpclient.Digest(before) == mcpclient.Digest(after) || s.Changed() {
		t.Errorf("%v, changed %v", err, s.Changed())
	}
}

func TestTooMuchIsNotTaken(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	long := strings.Repeat("x", mcpclient.MaxMessage)
	if _, err := mcpclient.Connect(ctx, speak(`{"jsonrpc":"2.0","id":$ID,"result":"`+long)); !errors.Is(err, mcpclient.ErrGone) {
		t.Errorf("stdio: %v", err)
	}
	for _, kind := range []string{"application/json", "text/event-stream"} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			for r := http.NewResponseController(w); ; { // until nobody listens
				if _, err := io.WriteString(w, long); err != nil || r.Flush() != nil {
					return
				}
			}
		}))
		way := mcpclient.HTTP(srv.URL, "", direct{})
		if _, err := mcpclient.Connect(ctx, way); err == nil || ctx.Err() != nil {
			t.Errorf("%s: taken", kind)
		}
		srv.Close()
	}
}

// What a server says unasked is not kept, and has an end.
func TestAFloodHasAnEnd(t *testing.T) {
	if testing.Short() {
		return // as the long form does, slower
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	hello := strings.ReplaceAll(mcptest.Answers()["other id"], "999", "$ID")
	for name, unasked := range map[string]string{
		"notifications": `{"jsonrpc":"2.0","method":"notifications/progress","params":{"x":"` + strings.Repeat("x", 1<<20) +
			`"}}` + "\n",
		"requests": `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"` + strings.Repeat("x", 1000) + `"}}` + "\n",
	} {
		s, err := mcpclient.Connect(ctx, speak(hello+strings.Repeat(unasked, 100)))
		for err == nil {
			_, err = s.Call(ctx, "a", nil)
			var remote *mcpclient.RemoteError
			if errors.As(err, &remote) {
				err = nil
			}
		}
		if !errors.Is(err, mcpclient.ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server that never answers is waited for until the context ends, and one that
// does not even read is given up.
func TestNobodyIsWaitedForLonger(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	both(t, "good", func(t *testing.T, s *mcpclient.Session) {
		if _, err := s.Call(ctx, "mute", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if _, err := s.Call(t.Context(), "echo", nil); err != nil {
			t.Errorf("the next call: %v", err)
		}
	})
	_, deaf := io.Pipe()
	out, _ := io.Pipe()
	if _, err := mcpclient.Connect(ctx, mcpclient.Stdio(deaf, out)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if _, err := out.Read(make([]byte, 1)); err == nil {
		t.Error("what it says is still listened to")
	}
}

// speak is a server that answers every line with what it is told to say.
func speak(says string) mcpclient.Transport {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() {
		defer outW.Close()
		for lines := bufio.NewScanner(inR); lines.Scan(); {
			var m struct{ ID json.RawMessage }
			if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
				continue
			}
			if _, err := io.WriteString(outW, strings.ReplaceAll(says, "$ID", string(m.ID))); err != nil {
				return
			}
		}
	}()
	return mcpclient.Stdio(inW, outR)
}

func TestWhatIsNoProtocolIsAnError(t *testing.T) {
	for name, says := range mcptest.Answers() {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			s, err := mcpclient.Connect(ctx, speak(says))
			if err == nil {
				defer s.Close()
				_, err = s.Tools(ctx)
			}
			var remote *mcpclient.RemoteError
			if err == nil || !errors.Is(err, mcpclient.ErrGone) && !errors.Is(err, context.DeadlineExceeded) &&
				!errors.As(err, &remote) {
				t.Errorf("%v", err)
			}
		})
	}
}

// FuzzServer is a server that says anything at all: nothing of it may end this
// process, or make it wait.
func FuzzServer(f *testing.F) {
	for _, says := range mcptest.Answers() {
		f.Add(says)
	}
	hello := mcptest.Answers()["other id"]
	f.Add(strings.ReplaceAll(hello, "999", "$ID") + `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n")
	f.Add(strings.ReplaceAll(hello, "999", "$ID") +
		`{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"a","inputSchema":{}},null],"nextCursor":"x"}}` + "\n")
	f.Add(strings.ReplaceAll(hello, "999", "$ID") +
		`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"mode":"url"}}` + "\n")
	f.Fuzz(func(t *testing.T, says string) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		s, err := mcpclient.Connect(ctx, speak(says))
		if err != nil {
			return
		}
		defer s.Close()
		if list, err := s.Tools(ctx); err == nil {
			mcpclient.Digest(list)
		}
		_, _ = s.Call(ctx, "a", json.RawMessage(`{}`))
	})
}
