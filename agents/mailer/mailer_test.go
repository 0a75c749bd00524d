package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/sdktest"
)

const (
	handle   = "rlsec_0123456789"
	adasMask = "<email:bcdfghjkmnpq>"
	adasName = "<name:bcdfghjkmnpq>"
)

var toService = job{api: "https://mail.example.com/v1/messages", from: "me@example.com"}

// A service answers net_http and remembers what it was sent.
type service struct {
	status int
	head   string
	posts  []struct{ head, body string }
}

func (s *service) answer(args []string) ([]byte, error) {
	s.posts = append(s.posts, struct{ head, body string }{args[0], args[1]})
	head := fmt.Sprintf(`{"status":%d,"headers":{%s}}`, s.status, s.head)
	return append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(head))), head...), `{"id":"m-1"}`...), nil
}

func setUp(t *testing.T, status int) (*sdktest.Host, *service) {
	t.Helper()
	h, s := sdktest.New(t), &service{status: status}
	h.Handle("net_http", s.answer)
	h.Handle("secret_handle", func([]string) ([]byte, error) { return []byte(handle), nil })
	// With contacts_raw a mask still names its contact, and the values are data.
	put(t, "contacts", adasMask, `{"name":"Ada Byron","email":"ada@example.org"}`)
	put(t, "drafts", "mail-1", draftOf("Dear "+adasName+",\n"+adasMask))
	return h, s
}

func put(t *testing.T, domain, key, value string) {
	t.Helper()
	if _, err := sdk.KBPut(domain, key, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

func draftOf(text string) string {
	return string(draft{
		contact: adasMask, to: adasMask, recipient: adasName, subject: "hello " + adasName, text: text,
		model: "local:echo",
	}.value(stateDraft))
}

func stateOf(t *testing.T, h *sdktest.Host, key string) string {
	t.Helper()
	v, ok := h.Value("drafts", key)
	var d struct{ State string }
	if err := json.Unmarshal(v, &d); !ok || err != nil {
		t.Fatalf("%s: %q %v", key, v, err)
	}
	return d.State
}

// A draft is sent to the person that its mask stands for, once, with the handle
// where the key belongs; the draft itself keeps its masks.
func TestSend(t *testing.T) {
	h, s := setUp(t, 202)
	if got := run(toService); got != "1 sent, 0 refused, 0 left as drafts\n" {
		t.Errorf("summary %q", got)
	}
	if len(s.posts) != 1 {
		t.Fatalf("%d posts", len(s.posts))
	}
	want := `{"from":"me@example.com","to":"ada@example.org","subject":"hello Ada Byron","text":"Dear Ada Byron,\nada@example.org"}`
	if s.posts[0].body != want {
		t.Errorf("body\n got %s\nwant %s", s.posts[0].body, want)
	}
	var head struct {
		Method, URL string
		Headers     map[string]string
	}
	if err := json.Unmarshal([]byte(s.posts[0].head), &head); err != nil {
		t.Fatal(err)
	}
	if head.Method != "POST" || head.URL != toService.api || head.Headers["Authorization"] != "Bearer "+handle ||
		head.Headers["Idempotency-Key"] != "mail-1" {
		t.Errorf("request %+v", head)
	}
	v, _ := h.Value("drafts", "mail-1")
	if stateOf(t, h, "mail-1") != stateSent || !bytes.Contains(v, []byte(`"id":"m-1"`)) ||
		bytes.Contains(v, []byte("ada@")) {
		t.Errorf("draft %s", v)
	}
	if run(toService); len(s.posts) != 1 {
		t.Error("sent twice")
	}
}

// What the service answers, and what becomes of the draft and of the run.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		status      int
		state, says string
		posts       int
	}{
		{202, stateSent, "2 sent", 2},
		{400, stateFailed, "2 refused", 2},
		{401, stateDraft, "does not take the key", 1},
		{429, stateDraft, "the service is busy (status 429, again in 7 s)", 1},
		{503, stateDraft, "the service is busy (status 503", 1},
	} {
		h, s := setUp(t, c.status)
		s.head = `"retry-after":"7"`
		put(t, "drafts", "mail-2", draftOf("two"))
		got := run(toService)
		if !strings.Contains(got, c.says) || len(s.posts) != c.posts || stateOf(t, h, "mail-1") != c.state {
			t.Errorf("%d: %d posts, %s, %q", c.status, len(s.posts), stateOf(t, h, "mail-1"), got)
		}
		if c.posts == 1 && !strings.Contains(got, "2 left") {
			t.Errorf("%d: %q", c.status, got)
		}
	}
}

// A denial stops the run, leaves the draft and is said.
func TestDenials(t *testing.T) {
	for _, c := range []struct{ op, arg, says, state string }{
		{"secret_handle", "", "could not have the key runloop/mail/api_key: denied", stateDraft},
		{"kb_list", "drafts", "could not list the drafts: denied", stateDraft},
		{"kb_get", "contacts", "did not send mail-1: denied", stateDraft},
		{"kb_cas", "drafts", "could not claim mail-1: denied", stateDraft},
		{"net_http", "", "could not send mail-1: denied", stateDraft},
	} {
		h, s := setUp(t, 202)
		h.Deny(c.op, c.arg, &sdk.Error{Op: c.op, Errno: sdk.ErrDenied, Reason: "not_granted"})
		got := run(toService)
		if !strings.Contains(got, c.says) || stateOf(t, h, "mail-1") != c.state || len(s.posts) != 0 {
			t.Errorf("%s: %q, draft %s", c.op, got, stateOf(t, h, "mail-1"))
		}
	}
	h, _ := setUp(t, 202)
	h.Deny("net_http", "", &sdk.Error{Op: "net_http", Errno: sdk.ErrIO})
	if got := run(toService); stateOf(t, h, "mail-1") != stateSending || !strings.Contains(got, "no answer") {
		t.Errorf("no answer: %q, %s", got, stateOf(t, h, "mail-1"))
	}
}

// A mail that would show its reader a mask, or somebody else's data, is not sent.
func TestMasksAreNotSent(t *testing.T) {
	for name, c := range map[string]struct{ contact, text string }{
		"control":                  {`{"name":"Ada Byron","email":"ada@example.org"}`, "hello"},
		"another person's mask":    {`{"name":"Ada Byron","email":"ada@example.org"}`, "ask <email:zzzzzzzzzzzz>"},
		"no contacts_raw":          {`{"name":"` + adasName + `","email":"` + adasMask + `"}`, "hello"},
		"an address of two":        {`{"name":"x","email":"a@b.cd, e@f.gh"}`, "hello"},
		"an address with a header": {`{"name":"x","email":"a@b.cd\r\nBcc: e@f.gh"}`, "hello"},
		"no address":               {`{"name":"x"}`, "hello"},
	} {
		h, s := setUp(t, 202)
		put(t, "contacts", adasMask, c.contact)
		put(t, "drafts", "mail-1", draftOf(c.text))
		got := run(toService)
		if sent := len(s.posts) == 1; sent != (name == "control") {
			t.Errorf("%s: %d posts, %q", name, len(s.posts), got)
		}
		if name != "control" && stateOf(t, h, "mail-1") != stateDraft {
			t.Errorf("%s: %s", name, stateOf(t, h, "mail-1"))
		}
	}
}

// A draft that another run claimed meanwhile is left to it, one that a run left
// behind is sent.
func TestClaims(t *testing.T) {
	h, s := setUp(t, 202)
	h.Deny("kb_cas", "drafts", &sdk.Error{Errno: sdk.ErrConflict})
	if run(toService); len(s.posts) != 0 {
		t.Error("sent what another run has")
	}
	h, s = setUp(t, 202)
	v, _ := h.Value("drafts", "mail-1")
	put(t, "drafts", "mail-1", strings.Replace(string(v), `"draft"`, `"sending"`, 1))
	if run(toService); len(s.posts) != 1 || stateOf(t, h, "mail-1") != stateSent {
		t.Errorf("%d posts, %s", len(s.posts), stateOf(t, h, "mail-1"))
	}
}

func TestJobs(t *testing.T) {
	for _, in := range []string{``, `{}`, `{"api":"ftp://x"}`, `{"api":"https://x","to":"y"}`, `[]`} {
		if j, err := parseJob([]byte(in)); err == nil {
			t.Errorf("%q: %+v", in, j)
		}
	}
	if j, err := parseJob([]byte(`{"api":"https://x/y","from":"a@b.cd","prefix":"p"}`)); err != nil ||
		j != (job{"https://x/y", "a@b.cd", "p"}) {
		t.Errorf("%+v %v", j, err)
	}
}

// moduleMax is the largest that the module may be, in bytes.
const moduleMax = 4 << 20

// The module imports what it calls and nothing else.
func TestModuleImports(t *testing.T) {
	module := sdktest.Build(t, ".")
	if len(module) > moduleMax {
		t.Errorf("the module has %d bytes, more than %d", len(module), moduleMax)
	}
	imports, err := sdktest.Imports(module)
	if err != nil {
		t.Fatal(err)
	}
	names := sdktest.Names(imports)
	slices.Sort(names)
	want := []string{"kb_cas", "kb_get", "kb_list", "net_http", "response_read", "result", "secret_handle"}
	for i := range want {
		want[i] = "runloop_v1." + want[i]
	}
	if !slices.Equal(names, want) {
		t.Errorf("imports %v, want %v", names, want)
	}
}
