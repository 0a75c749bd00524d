package hostcalls

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// hearing is a vault that keeps what it is told of who is sent what, and who is
// heard.
type hearing struct {
	oneSecret
	sent, heard     []string
	sending, hears  error
	knowsOfNothings bool
}

func (h *hearing) Sending(id, host string) error {
	h.sent = append(h.sent, id+" to "+host)
	return h.sending
}

func (h *hearing) Hear(_ context.Context, host string, ids []string) error {
	h.heard = append(h.heard, host+" "+strings.Join(ids, " "))
	return h.hears
}

func (h *hearing) Knows() bool { return !h.knowsOfNothings }

// hearingRig is a run of api.example.com and other.example, with a secret that is
// bound to the first, one to all below wild.example, one to nothing.
func hearingRig(t *testing.T) (*rig, *hearing, *[]string) {
	t.Helper()
	r := netRig(t, apiWorld(t), "schema = \"0.2\"\n[capabilities]\nnet = [\"api.example.com\", \"other.example\", "+
		"\"a.wild.example\"]\n"+
		"secrets = [{ id = \"runloop/t/api\", hosts = [\"api.example.com\"] }, { id = \"runloop/t/wild\", hosts = "+
		"[\"*.wild.example\"] }, \"runloop/t/any\"]\n")
	v, warned := &hearing{oneSecret: oneSecret{"rlsec_abc", "hunter2hunter2", "runloop/t/api"}}, &[]string{}
	r.host.cfg.Secrets, r.host.cfg.HTTP = v, &answering{status: 200, body: strings.NewReader(""), none: true}
	r.host.cfg.Warn = func(m string) { *warned = append(*warned, m) }
	return r, v, warned
}

// Before anybody looks at what a host says, its secrets are told: those that the
// base binds to it or to nothing, each time that it answers.
func TestWhoIsHeardIsToldToTheSecrets(t *testing.T) {
	r, v, warned := hearingRig(t)
	for _, host := range []string{"api.example.com", "other.example", "a.wild.example", "api.example.com"} {
		if n, _ := r.get("https://" + host + "/"); n < 0 {
			t.Fatalf("%s: %d", host, n)
		}
	}
	want := []string{
		"api.example.com:443 runloop/t/any runloop/t/api", "other.example:443 runloop/t/any",
		"a.wild.example:443 runloop/t/any runloop/t/wild", "api.example.com:443 runloop/t/any runloop/t/api",
	}
	for i := range v.heard {
		host, ids, _ := strings.Cut(v.heard[i], " ")
		list := strings.Fields(ids)
		slices.Sort(list)
		v.heard[i] = host + " " + strings.Join(list, " ")
	}
	if !slices.Equal(v.heard, want) || len(*warned) != 0 {
		t.Errorf("heard %q, want %q; warned of %q", v.heard, want, *warned)
	}
	v.hears = errors.New("one of them cannot be read")
	if n, _ := r.get("https://api.example.com/"); n < 0 || len(*warned) != 1 || !strings.Contains((*warned)[0],
		"what api.example.com:443 says") {
		t.Errorf("%d, warned of %q", n, *warned)
	}
}

// What goes to a host is noted before, and not sent where that cannot be; a
// program is no host.
func TestWhatIsSentIsNotedBefore(t *testing.T) {
	r, v, warned := hearingRig(t)
	if n, got := r.ask("https://api.example.com/", "rlsec_abc"); n < 0 ||
		!slices.Equal(v.sent, []string{"runloop/t/api to api.example.com:443"}) {
		t.Errorf("%d %s, noted %q", n, got, v.sent)
	}
	v.sending = errors.New("the vault is full")
	before := len(v.heard)
	n, got := r.ask("https://api.example.com/", "rlsec_abc")
	last := r.log.Decisions[len(r.log.Decisions)-1]
	if n >= 0 || !last.Deny || last.Reason != "unavailable" || len(v.heard) != before ||
		!slices.Equal(*warned, []string{"the vault is full"}) {
		t.Errorf("%d %s, recorded %+v, warned of %q", n, got, last, *warned)
	}
	x, f := execRig(t, "process:exec:/usr/bin/grep", "env:read:TOKEN", "secrets:read:runloop/t/api")
	x.host.cfg.Secrets, v.sent = v, nil
	if n, d := x.start("TOKEN", "rlsec_abc"); n < 0 || len(f.ran) != 1 || len(v.sent) != 0 {
		t.Errorf("a program: %d %+v, noted %q", n, d, v.sent)
	}
}

// A run that knows no value is told the lengths of an answer, one that knows any
// is not; a value that is as long as its mark is taken out as any other.
func TestHeadsWithoutValues(t *testing.T) {
	for _, knows := range []bool{true, false} {
		r, v, _ := hearingRig(t)
		v.knowsOfNothings = !knows
		r.host.cfg.HTTP = &answering{status: 200, none: true, header: http.Header{
			"Content-Range":  {"bytes 0-1/2"},
			"Content-Length": {"2"}, "X-A": {"b"},
		}}
		_, a := r.get("https://api.example.com/")
		if (a.Headers["Content-Range"] == nil) != knows || (a.Headers["Content-Length"] == nil) != knows ||
			a.Headers["X-A"] != "b" {
			t.Errorf("knows %v: %v", knows, a.Headers)
		}
	}
	const value = "hunter22" // as long as [secret]
	r := newRig(t)
	r.host.cfg.Secrets = oneSecret{"rlsec_abc", value, "runloop/t/x"}
	r.call("log", "info", "it is "+value+".")
	if !slices.Equal(r.lines, []string{"info: it is [secret]."}) {
		t.Errorf("logged %q", r.lines)
	}
	if got := r.host.Result(); got != nil {
		t.Errorf("a run that gave no result has %q", got)
	}
	for in, want := range map[string]string{
		`{"a":"` + value + `"}`: `{"a":"[secret]"}`,
		value:                   `[secret]`,
		`{"a":"b"}`:             `{"a":"b"}`,
		`["` + `]`:              `["` + `]`,
	} {
		if got := string(r.host.scrubFirst([]byte(in))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
	r.host.cfg.Secrets = oneSecret{"rlsec_abc", `","b":`, "runloop/t/x"} // across the structure
	if got := string(r.host.scrubFirst([]byte(`{"a":"1","b":"2"}`))); got != `{"a":"1","b":"2"}` {
		t.Errorf("the structure is gone: %s", got)
	}
	(&Config{}).warn(errors.New("nobody is told"))
}

// An id of a secret is read as strictly as in a policy.
func TestRefusedSecretsSayWhatToWrite(t *testing.T) {
	r, _ := mailRig(t, "secrets:read:"+mailKey)
	_, want := caps.SecretID("mail/key")
	if n, d := r.denial("secret_handle", "mail/key"); n != -28 || want == nil || d.Hint != want.Error() {
		t.Errorf("%d %+v, want %v", n, d, want)
	}
}

// A brokenVault cannot be opened.
type brokenVault struct{ oneSecret }

func (brokenVault) Handle(context.Context, string) (string, error) {
	return "", errors.New("the vault cannot be opened")
}
