package hostcalls

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/secrets"
)

const (
	mailKey  = "runloop/mail/key"
	mailText = "sk-live-4eC39HqLyjWDarjtT1zdp7dc"
)

// mailRig is a rig whose run has the secret mailKey, granted as told.
func mailRig(t testing.TB, grants ...string) (r *rig, told *[]string) {
	t.Helper()
	tenant, err := ident.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	r, told = newRig(t, grants...), &[]string{}
	r.host.cfg.Secrets = secrets.NewRun(func() (secrets.Provider, error) {
		return secrets.Open(secrets.Config{
			Provider: "env", Tenant: tenant,
			Env: []string{"RLP_SECRET_default_0mail_0key=" + mailText, "RLP_SECRET_default_0mail_0other=correct-horse"},
		})
	})
	r.host.cfg.Replaced = func(id, op string) { *told = append(*told, op+" "+id) }
	return r, told
}

func (r *rig) handle(id string) string {
	r.t.Helper()
	n, handle := r.call("secret_handle", id)
	if n < 0 {
		r.t.Fatalf("secret_handle(%s) = %d %s", id, n, handle)
	}
	return handle
}

// A guest that is granted a secret gets a handle, and its memory never holds
// the value, in however many ways it asks.
//
//rlp:holds R82 R30 K10 K12
func TestSecretHandle(t *testing.T) {
	r, _ := mailRig(t, "secrets:read:"+mailKey)
	handle := r.handle(mailKey)
	if !strings.HasPrefix(handle, "rlsec_") || handle != r.handle(mailKey) {
		t.Errorf("handle %q", handle)
	}
	if d := r.log.Decisions[0]; d.Deny || d.Cap != "secrets.get" || d.Target != mailKey || d.Args == nil {
		t.Errorf("recorded %+v", d)
	}
	if n, a := r.denial("secret_handle", "runloop/mail/other"); n != -2 || a.Reason != "secret_not_permitted" {
		t.Errorf("a secret that is not granted: %d %+v", n, a)
	}
	if d := r.log.Decisions[len(r.log.Decisions)-1]; !d.Deny || d.Target != "secret" {
		t.Errorf("recorded %+v", d)
	}
	if n, a := r.denial("secret_handle", "mail/key"); n != -28 || a.Reason != "invalid_request" {
		t.Errorf("no id: %d %+v", n, a)
	}
	r.handle(mailKey)
	if !bytes.Contains(r.mem, []byte(handle)) {
		t.Fatal("control: the handle is not in the guest's memory")
	}
	if bytes.Contains(r.mem, []byte(mailText)) {
		t.Error("the value is in the guest's memory")
	}
}

// What is granted and not stored, or cannot be reached, is refused with a
// reason of its own, and without the id in the record.
func TestSecretThatIsNotThere(t *testing.T) {
	r, _ := mailRig(t, "secrets:read:runloop/mail/none")
	n, a := r.denial("secret_handle", "runloop/mail/none")
	if n != -2 || a.Reason != "secret_unknown" || !strings.Contains(a.Hint, "rlp secrets put runloop/mail/none") {
		t.Errorf("%d %+v", n, a)
	}
	if d := r.log.Decisions[len(r.log.Decisions)-1]; !d.Deny || d.Reason != "secret_unknown" || d.Target != "secret" {
		t.Errorf("recorded %+v", d)
	}
	var warned []string
	r.host.cfg.Warn = func(m string) { warned = append(warned, m) }
	r.host.cfg.Secrets = secrets.NewRun(func() (secrets.Provider, error) {
		return nil, &secrets.UnavailableError{Provider: "age", Why: "there is no vault yet"}
	})
	if n, a := r.denial("secret_handle", "runloop/mail/none"); n != -58 || a.Reason != "unavailable" {
		t.Errorf("%d %+v", n, a)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "no vault yet") {
		t.Errorf("the operator was told %q", warned)
	}
}

// A value goes where the policy binds it to: the matrix of grants and
// destinations. A program is no host.
//
//rlp:holds R82
func TestFillAsksTheGate(t *testing.T) {
	api, other, wild := Destination{Host: "api.x.org:443"}, Destination{Host: "evil.org:443"},
		Destination{Host: "b.x.org:443"}
	program := Destination{Program: "/usr/bin/curl"}
	for _, c := range []struct {
		grant, deny string
		want        []Destination
	}{
		{"secrets:read:" + mailKey, "", []Destination{api, other, wild, program}},
		{"secrets:read:" + mailKey + "@api.x.org", "", []Destination{api}},
		{"secrets:read:" + mailKey + "@*.x.org", "", []Destination{api, wild}},
		{"secrets:read:" + mailKey + "@api.x.org:8443", "", nil},
		{"secrets:get:" + mailKey, "", nil},
		{"secrets:read:" + mailKey, "secrets:use:" + mailKey + "@evil.org", []Destination{api, wild, program}},
		{"secrets:read:" + mailKey, "secrets:use:*", nil},
	} {
		r, _ := mailRig(t, c.grant)
		handle := r.handle(mailKey)
		if c.deny != "" {
			grants, err := caps.ParseDeny(c.deny)
			if err != nil {
				t.Fatal(err)
			}
			layer := &caps.Layer{Name: "later"}
			for _, g := range grants {
				layer.Deny = append(layer.Deny, caps.Entry{Grant: g})
			}
			if err := r.gate.Hold(layer); err != nil {
				t.Fatal(err)
			}
		}
		op, err := r.gate.Op("net_http")
		if err != nil {
			t.Fatal(err)
		}
		for _, dst := range []Destination{api, other, wild, program} {
			before := len(r.log.Decisions)
			got, err := r.host.cfg.fill(op, "Bearer "+handle, dst)
			if slices.Contains(c.want, dst) {
				if got != "Bearer "+mailText || err != nil {
					t.Errorf("%s - %s to %v: %q, %v", c.grant, c.deny, dst, got, err)
				}
			} else if got != "" || !errors.Is(err, errDenied) {
				t.Errorf("%s - %s to %v: %q, %v", c.grant, c.deny, dst, got, err)
			}
			if recs := r.log.Decisions[before:]; len(recs) != 1 || recs[0].Cap != "secrets.get" || recs[0].Deny != (err != nil) {
				t.Errorf("%s to %v: recorded %+v", c.grant, dst, recs)
			}
		}
	}
}

// What begins like a handle and is none of this run's is refused, not sent as
// it is: it may be another run's.
func TestForeignHandlesAreRefused(t *testing.T) {
	r, _ := mailRig(t, "secrets:read:"+mailKey)
	other, _ := mailRig(t, "secrets:read:"+mailKey)
	op, err := r.gate.Op("net_http")
	if err != nil {
		t.Fatal(err)
	}
	dst := Destination{Host: "api.x.org:443"}
	if got, err := r.host.cfg.fill(op, r.handle(mailKey), dst); got != mailText || err != nil {
		t.Fatalf("control: %q, %v", got, err)
	}
	for _, text := range []string{other.handle(mailKey), "rlsec_x", "a rlsec_" + strings.Repeat("a", 32)} {
		got, err := r.host.cfg.fill(op, text, dst)
		if hint := string(r.host.explain(Acces, err)); !strings.Contains(hint, "secret_unknown") ||
			!strings.Contains(hint, "secret_handle") {
			t.Errorf("explained: %s", hint)
		}
		if got != "" || !errors.Is(err, errDenied) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		d := r.log.Decisions[len(r.log.Decisions)-1]
		if !d.Deny || d.Reason != "secret_unknown" || strings.Contains(d.Target, "rlsec_") {
			t.Errorf("%q: recorded %+v", text, d)
		}
	}
}

// Values that a guest has from somewhere are neither stored, logged, returned
// nor recorded, and what was stored by others does not reach it.
//
//rlp:holds R82 K11 K57
func TestValuesStayOutOfEverything(t *testing.T) {
	encodings := map[string]string{"plain": mailText, "base64": base64.StdEncoding.EncodeToString([]byte("x:" + mailText))}
	for name, text := range encodings {
		r, told := mailRig(t, "secrets:read:"+mailKey, "kb:write:notes", "kb:read:notes")
		if r.call("kb_put", "notes", "control", text); !strings.Contains(r.kb["notes/control"], text) {
			t.Fatal("control: before the handle is asked for, nothing is known of the value")
		}
		r.handle(mailKey)
		r.call("kb_put", "notes", "k"+text, "value "+text)
		r.call("log", "info", "log "+text)
		doc, err := json.Marshal(map[string]string{"out": text})
		if err != nil {
			t.Fatal(err)
		}
		r.call("result", string(doc))
		r.kb["notes/planted"] = "planted " + text
		_, got := r.call("kb_get", "notes", "planted")
		r.call("kb_get", "forbidden", text)
		delete(r.kb, "notes/control")
		delete(r.kb, "notes/planted")
		core := text[4 : len(text)-4]
		for key, value := range r.kb {
			if strings.Contains(key+value, core) {
				t.Errorf("%s: stored %q = %q", name, key, value)
			}
		}
		if len(r.kb) != 1 {
			t.Errorf("%s: stored %d values", name, len(r.kb))
		}
		all := strings.Join(r.lines, "\n") + string(r.host.Result()) + got
		for _, d := range r.log.Decisions {
			all += d.Target
		}
		if strings.Contains(all, core) {
			t.Errorf("%s stays in %s", name, all)
		}
		if n := strings.Count(all, "[secret "+mailKey+"]"); n < 4 {
			t.Errorf("%s: %d marks in %s", name, n, all)
		}
		for _, op := range []string{"kb_put", "log", "result", "kb_get"} {
			if !slices.Contains(*told, op+" "+mailKey) {
				t.Errorf("%s: %s was not reported: %q", name, op, *told)
			}
		}
	}
}

// A result stays one JSON document, whatever of it was a value.
func TestScrubbedResultsAreJSON(t *testing.T) {
	r, _ := mailRig(t, "secrets:read:"+mailKey)
	r.handle(mailKey)
	for _, in := range []string{`{"a":"` + mailText + `"}`, `"` + mailText + `"`, `["x","` + mailText + `"]`} {
		r.call("result", in)
		if out := r.host.Result(); !json.Valid(out) || bytes.Contains(out, []byte(mailText)) {
			t.Errorf("%s became %s", in, out)
		}
	}
	if out := r.host.scrubResult([]byte(mailText)); !json.Valid(out) {
		t.Errorf("a value as a whole became %s", out)
	}
}

// FuzzSecretHandle: whatever a guest asks, it gets a handle or a number, and
// never the value.
func FuzzSecretHandle(f *testing.F) {
	for _, s := range []string{
		mailKey, "runloop/mail/other", "runloop/../key", "", "\x00", "rlsec_x",
		strings.Repeat("a", 5000), "runloop/mail/key@x.org",
	} {
		f.Add(s, uint32(16), uint32(len(s)))
	}
	f.Fuzz(func(t *testing.T, id string, at, n uint32) {
		r, _ := mailRig(t, "secrets:read:"+mailKey)
		copy(r.mem[16:], id)
		stack := []uint64{uint64(at), uint64(n), outAt, outRoom}
		if err := r.funcs["secret_handle"].Call(t.Context(), r.mem, stack); err != nil {
			t.Fatal(err)
		}
		r.rest()
		if bytes.Contains(r.mem, []byte(mailText)) {
			t.Fatal("the value is in the guest's memory")
		}
		if got := int64(stack[0]); got >= 0 && (at != 16 || id[:min(int(n), len(id))] != mailKey) &&
			!bytes.Equal(r.mem[at:at+n], []byte(mailKey)) {
			t.Fatalf("%q has a handle", id)
		}
	})
}
