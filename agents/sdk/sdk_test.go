package sdk_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/sdktest"
)

func TestKBRoundTrip(t *testing.T) {
	h := sdktest.New(t)
	if rev, err := sdk.KBPut("notes", "a", []byte("one")); err != nil || rev != 1 {
		t.Fatalf("put: revision %d, %v", rev, err)
	}
	if rev, err := sdk.KBCAS("notes", "a", []byte("two"), 1); err != nil || rev != 2 {
		t.Fatalf("cas: revision %d, %v", rev, err)
	}
	if _, err := sdk.KBCAS("notes", "a", []byte("lost"), 1); !errors.Is(err, sdk.ErrConflict) {
		t.Errorf("a lost cas: %v", err)
	}
	if v, err := sdk.KBGet("notes", "a"); err != nil || string(v) != "two" {
		t.Errorf("get: %q, %v", v, err)
	}
	list, err := sdk.KBList("notes", "")
	if want := []sdk.KBEntry{{Key: "a", Revision: 2, Size: 3}}; err != nil || !slices.Equal(list, want) {
		t.Errorf("list: %v, %v", list, err)
	}
	if err := sdk.KBDelete("notes", "a"); err != nil {
		t.Error(err)
	}
	if _, err := sdk.KBGet("notes", "a"); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, sdk.ErrNotExist) {
		t.Errorf("get of nothing: %v", err)
	}
	if list, err := sdk.KBList("notes", ""); err != nil || len(list) != 0 {
		t.Errorf("list of nothing: %v, %v", list, err)
	}
	if got := len(h.Calls); got != 8 {
		t.Errorf("%d calls, want 8", got)
	}
}

func TestKBSearch(t *testing.T) {
	h := sdktest.New(t)
	h.Handle("kb_search", func(args []string) ([]byte, error) {
		if !slices.Equal(args, []string{"notes", `{"text":"say \"hi\"","k":3}`}) {
			t.Errorf("request %q", args)
		}
		return []byte(`[{"key":"a","score":1.5,"snippet":"hi"}]`), nil
	})
	hits, err := sdk.KBSearch("notes", `say "hi"`, 3)
	if want := []sdk.KBHit{{Key: "a", Score: 1.5, Snippet: "hi"}}; err != nil || !slices.Equal(hits, want) {
		t.Errorf("%v, %v", hits, err)
	}
}

// Responses around the size of the scratch buffer, and into buffers of the
// caller's of every kind, arrive whole and behind what was there.
func TestResponsesOfEverySize(t *testing.T) {
	sdktest.New(t)
	for _, size := range []int{0, 1, 4095, 4096, 4097, 10_000, 1 << 20} {
		want := bytes.Repeat([]byte("0123456789abcde"), size/15+1)[:size]
		if _, err := sdk.KBPut("notes", "k", want); err != nil {
			t.Fatal(err)
		}
		for _, room := range []int{0, 2, 100, 4096, 5000, 2 << 20} {
			dst := append(make([]byte, 0, room+2), "x:"...)
			got, err := sdk.AppendKBGet(dst, "notes", "k")
			if err != nil || string(got[:2]) != "x:" || !bytes.Equal(got[2:], want) {
				t.Errorf("size %d, room %d: %d bytes, %v", size, room, len(got), err)
			}
		}
	}
}

func TestReusedBufferIsWrittenInPlace(t *testing.T) {
	h := sdktest.New(t)
	value := bytes.Repeat([]byte("v"), 4096)
	h.Handle("kb_get", func([]string) ([]byte, error) { return value, nil })
	buf := make([]byte, 0, 8192)
	got, err := sdk.AppendKBGet(buf, "notes", "k")
	if err != nil || &got[0] != &buf[:1][0] {
		t.Errorf("the response went elsewhere than into the caller's buffer (%v)", err)
	}
}

func TestOneGoroutinesResponseIsNeverAnothers(t *testing.T) {
	sdktest.New(t)
	sdk.SetBackend(echo{})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			key := strings.Repeat(string(rune('a'+g)), 5000+g)
			for range 200 {
				if v, err := sdk.KBGet("notes", key); err != nil || string(v) != key {
					t.Errorf("goroutine %d got %.10q, %v", g, v, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

type echo struct{}

func (echo) Call(_ string, args ...string) ([]byte, error) { return []byte(args[len(args)-1]), nil }

func TestDenialSaysWhatAndWhy(t *testing.T) {
	h := sdktest.New(t)
	h.Deny("kb_put", "contacts", &sdk.Error{
		Errno: sdk.ErrDenied, Capability: "kb:write:contacts",
		Reason: "domain_not_permitted", Hint: strings.Repeat("long ", 2000),
	})
	_, err := sdk.KBPut("contacts", "a", nil)
	e, ok := errors.AsType[*sdk.Error](err)
	if !ok || e.Op != "kb_put" || e.Errno != 2 || e.Capability != "kb:write:contacts" ||
		e.Reason != "domain_not_permitted" || len(e.Hint) != 10_000 {
		t.Fatalf("%#v", err)
	}
	if !errors.Is(err, sdk.ErrDenied) || !errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v matches the wrong sentinels", err)
	}
	if got, want := err.Error(), "kb_put kb:write:contacts: denied (domain_not_permitted)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// The control: another domain is untouched.
	if _, err := sdk.KBPut("artifacts", "a", nil); err != nil {
		t.Error(err)
	}
}

func TestErrnosMatchTheStandardLibrary(t *testing.T) {
	for errno, want := range map[sdk.Errno]error{
		sdk.ErrDenied: fs.ErrPermission, sdk.ErrNotExist: fs.ErrNotExist, sdk.ErrInvalid: fs.ErrInvalid,
		sdk.ErrTimeout: os.ErrDeadlineExceeded, sdk.ErrNoSys: errors.ErrUnsupported,
		sdk.ErrUnavailable: errors.ErrUnsupported,
	} {
		if !errors.Is(&sdk.Error{Errno: errno}, want) {
			t.Errorf("%v is not %v", errno, want)
		}
		if errors.Is(&sdk.Error{Errno: sdk.ErrBudget}, want) {
			t.Errorf("%v is %v", sdk.ErrBudget, want)
		}
	}
	seen := map[string]bool{}
	for _, e := range []sdk.Errno{1, 2, 6, 19, 21, 28, 29, 44, 52, 58, 73, 99} {
		if seen[e.Error()] {
			t.Errorf("two numbers read %q", e)
		}
		seen[e.Error()] = true
	}
}

func TestWhy(t *testing.T) {
	for want, err := range map[string]error{
		"": nil,
		"denied (lease_expired)": &sdk.Error{
			Op: "kb_get", Errno: sdk.ErrDenied, Hint: "renew it",
			Reason: "lease_expired",
		},
		"i/o error: disk on fire":            &sdk.Error{Errno: sdk.ErrIO, Reason: "io", Hint: "disk on fire"},
		"denied":                             &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrPermission},
		"does not exist":                     &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist},
		fs.ErrClosed.Error():                 &fs.PathError{Op: "read", Path: "/x", Err: fs.ErrClosed},
		io.ErrUnexpectedEOF.Error():          io.ErrUnexpectedEOF,
		"error number 99 (budget_exhausted)": &sdk.Error{Errno: 99, Reason: "budget_exhausted"},
	} {
		if got := sdk.Why(err); got != want {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
}

func TestWithoutAHostEverythingIsUnavailable(t *testing.T) {
	t.Cleanup(sdk.SetBackend(nil))
	if err := sdk.Log(sdk.LevelWarn, "x"); !errors.Is(err, sdk.ErrUnavailable) {
		t.Errorf("log: %v", err)
	}
}

func TestParam(t *testing.T) {
	t.Setenv("RLP_PARAM_NOTES", "/home/u/notes")
	t.Setenv("RLP_PARAM_OUT_DIR", "")
	if v, ok := sdk.Param("notes"); !ok || v != "/home/u/notes" {
		t.Errorf("notes: %q, %v", v, ok)
	}
	if v, ok := sdk.Param("out_dir"); !ok || v != "" {
		t.Errorf("out_dir: %q, %v", v, ok)
	}
	if v, ok := sdk.Param("tree"); ok {
		t.Errorf("tree: %q", v)
	}
}

func TestLogResultTimeTurn(t *testing.T) {
	h := sdktest.New(t)
	if err := sdk.Log(sdk.LevelWarn, "careful"); err != nil || !slices.Equal(h.Log, []string{"warn: careful"}) {
		t.Errorf("log: %q, %v", h.Log, err)
	}
	if err := sdk.ResultOf(map[string]int{"n": 1}); err != nil || string(h.Result) != `{"n":1}` {
		t.Errorf("result: %s, %v", h.Result, err)
	}
	h.Handle("time_now", func([]string) ([]byte, error) { return []byte("1700000000000000001"), nil })
	if now, err := sdk.TimeNow(); err != nil || !now.Equal(time.Unix(1700000000, 1)) {
		t.Errorf("time: %v, %v", now, err)
	}
	inputs := []string{"first", "second"}
	h.Handle("turn_next", func([]string) ([]byte, error) {
		if len(inputs) == 0 {
			return nil, &sdk.Error{Errno: sdk.ErrNotExist}
		}
		next := inputs[0]
		inputs = inputs[1:]
		return []byte(next), nil
	})
	for _, want := range []string{"first", "second"} {
		if got, err := sdk.TurnNext(); err != nil || string(got) != want {
			t.Errorf("turn: %q, %v", got, err)
		}
	}
	if _, err := sdk.TurnNext(); err != io.EOF {
		t.Errorf("after the last turn: %v", err)
	}
}

func framed(head string, body string) []byte {
	return append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(head))), head...), body...)
}

func TestHTTP(t *testing.T) {
	h := sdktest.New(t)
	h.Handle("net_http", func(args []string) ([]byte, error) {
		if want := `{"method":"POST","url":"https://api.example.com/v1","headers":{"Authorization":"Bearer rlsec_1"},"timeout_ms":1500}`; args[0] != want || args[1] != "body" {
			t.Errorf("request %q", args)
		}
		return framed(`{"status":404,"headers":{"a":"b","c":["d","e"]}}`, "gone"), nil
	})
	r, err := sdk.HTTP(sdk.HTTPRequest{
		Method: "POST", URL: "https://api.example.com/v1", Timeout: 1499*time.Millisecond + 1,
		Headers: map[string]string{"Authorization": "Bearer rlsec_1"}, Body: []byte("body"),
	})
	if err != nil || r.Status != 404 || string(r.Body) != "gone" || !maps.Equal(r.Headers, map[string]string{
		"a": "b",
		"c": "d, e",
	}) {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestExecRun(t *testing.T) {
	h := sdktest.New(t)
	head := `{"exit_code":3,"timed_out":true,"stdout_bytes":3,"stderr_bytes":2}`
	h.Handle("exec_run", func(args []string) ([]byte, error) {
		if want := `{"argv":["/usr/bin/grep","x"],"env":{"A":"b"},"cwd":"/w"}`; args[0] != want || args[1] != "in" {
			t.Errorf("request %q", args)
		}
		return framed(head, "outer"), nil
	})
	req := sdk.ExecRequest{
		Argv: []string{"/usr/bin/grep", "x"}, Env: map[string]string{"A": "b"}, Dir: "/w",
		Stdin: []byte("in"),
	}
	r, err := sdk.ExecRun(req)
	if err != nil || r.ExitCode != 3 || !r.TimedOut || string(r.Stdout) != "out" || string(r.Stderr) != "er" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, head = range []string{
		`{"stdout_bytes":6}`, `{"stdout_bytes":3,"stderr_bytes":3}`,
		`{"stdout_bytes":18446744073709551615,"stderr_bytes":6}`, `[]`,
	} {
		if _, err := sdk.ExecRun(req); !errors.Is(err, sdk.ErrIO) {
			t.Errorf("head %s: %v", head, err)
		}
	}
}

func TestJSONCalls(t *testing.T) {
	h := sdktest.New(t)
	answer := func(op, request, response string) {
		h.Handle(op, func(args []string) ([]byte, error) {
			if args[0] != request {
				t.Errorf("%s: request %s, want %s", op, args[0], request)
			}
			return []byte(response), nil
		})
	}
	answer("model_complete", `{"model":"local:echo","messages":[{"role":"user","content":"hi"}],"max_tokens":5}`,
		`{"text":"hi","usage":{"tokens_in":1,"tokens_out":2,"usd":0.5},"model":"local:echo","finish_reason":"stop"}`)
	c, err := sdk.ModelComplete(sdk.CompletionRequest{
		Model:    "local:echo",
		Messages: []sdk.Message{{Role: "user", Content: "hi"}}, MaxTokens: 5,
	})
	if err != nil || c.Text != "hi" || c.Usage != (sdk.Usage{TokensIn: 1, TokensOut: 2, USD: 0.5}) ||
		c.FinishReason != "stop" {
		t.Errorf("complete: %+v, %v", c, err)
	}
	answer("model_embed", `{"input":["a","b"]}`, `{"vectors":[[1,2],[3,4]]}`)
	if e, err := sdk.ModelEmbed("", []string{"a", "b"}); err != nil || len(e.Vectors) != 2 || e.Vectors[1][0] != 3 {
		t.Errorf("embed: %+v, %v", e, err)
	}
	answer("mcp_call", `{"server":"github","tool":"search","arguments":{"q":1}}`, `{"content":[]}`)
	if r, err := sdk.MCPCall("github", "search", json.RawMessage(`{"q":1}`)); err != nil || string(r) != `{"content":[]}` {
		t.Errorf("mcp: %s, %v", r, err)
	}
	answer("agent_launch", `{"agent":"critic","deny":["net:https:*"],"limits":{"wall_time_ms":10}}`,
		`{"run_id":"r","agent":"critic","outcome":"exit","exit_code":4,"result":[1]}`)
	r, err := sdk.AgentLaunch(sdk.LaunchRequest{
		Agent: "critic", Deny: []string{"net:https:*"},
		Limits: map[string]int64{"wall_time_ms": 10},
	})
	if err != nil || r.RunID != "r" || r.Outcome != "exit" || r.ExitCode != 4 || string(r.Result) != "[1]" {
		t.Errorf("launch: %+v, %v", r, err)
	}
	answer("secret_handle", "runloop/mail/key", "rlsec_42")
	if s, err := sdk.SecretHandle("runloop/mail/key"); err != nil || s != "rlsec_42" {
		t.Errorf("secret: %q, %v", s, err)
	}
}

// What a broken host answers is an error, never a panic or a made-up value.
func TestMalformedResponses(t *testing.T) {
	for _, response := range []string{
		"", "x", "-1", "\xff\xff\xff\xff", "\x01\x00\x00\x00", "\x02\x00\x00\x00{}", "[{}]",
		"[1", "{}",
	} {
		t.Cleanup(sdk.SetBackend(constant(response)))
		for op, err := range map[string]error{
			"kb_put":    errOf(sdk.KBPut("d", "k", nil)),
			"kb_cas":    errOf(sdk.KBCAS("d", "k", nil, 0)),
			"kb_list":   errOf(sdk.KBList("d", "")),
			"kb_search": errOf(sdk.KBSearch("d", "", 1)),
			"time_now":  errOf(sdk.TimeNow()),
			"exec_run":  errOf(sdk.ExecRun(sdk.ExecRequest{})),
		} {
			// An empty head is a legal one for a program that wrote nothing.
			if op == "exec_run" && response == "\x02\x00\x00\x00{}" {
				continue
			}
			if e, ok := errors.AsType[*sdk.Error](err); !ok || e.Op != op || e.Errno != sdk.ErrIO {
				t.Errorf("%s of %q: %v", op, response, err)
			}
		}
	}
}

type constant string

func (c constant) Call(string, ...string) ([]byte, error) { return []byte(c), nil }

func errOf[T any](_ T, err error) error { return err }
