package hostcalls

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"runloop.dev/rlp/caps"
)

// valuesIn are the secrets of this run of which values are in text.
func (d *redactor) valuesIn(text string) []string {
	if d.cfg.Secrets == nil {
		return nil
	}
	var ids []string
	d.cfg.Secrets.Scrub(bytesOf(text), func(id string) { ids = append(ids, id) })
	return ids
}

// knows reports whether there is any value that must not be told, nor its length.
func (d *redactor) knows() bool { return d.cfg.Secrets != nil && d.cfg.Secrets.Knows() }

// headWithout is a head without this run's secrets, before anything is escaped, and
// without the lengths of a body that may have had one in it.
func (d *redactor) headWithout(head http.Header) http.Header {
	if !d.knows() {
		return head
	}
	clean := make(http.Header, len(head))
	for name, values := range head {
		if name == "Content-Length" || name == "Content-Range" {
			continue
		}
		name = d.scrubText(name)
		for _, v := range values {
			clean[name] = append(clean[name], d.scrubText(v))
		}
	}
	return clean
}

// hear looks, from now on, for what host was sent or may be sent: what it says is
// about to be looked at.
func (d *redactor) hear(ctx context.Context, host string) {
	if d.cfg.Secrets == nil {
		return
	}
	ids, known := d.bound[host]
	if !known {
		for _, g := range d.cfg.Gate.Set().BaseGrants() {
			if id, to, _ := strings.Cut(g.Scope, "@"); g.Family == caps.Secrets && caps.BoundTo(to, host) {
				ids = append(ids, id)
			}
		}
		if d.bound == nil {
			d.bound = map[string][]string{}
		}
		d.bound[host] = ids
	}
	if err := d.cfg.Secrets.Hear(ctx, host, ids); err != nil {
		d.cfg.warn(fmt.Errorf("what %s says is not looked through for every secret that it was sent: %w", host, err))
	}
}

// discreet is the report without the secrets of this run. Where one stands so
// that what is left is no JSON, what the agent said is left out altogether.
func (d *redactor) discreet(got *Delegated) []byte {
	for _, report := range [][]byte{got.Report, got.Less} {
		if clean := d.scrub(report); json.Valid(clean) {
			return clean
		}
	}
	return nil
}

// output is what the guest gets of a stream. Where the stream was cut, what may
// be the beginning of a secret's value is cut off as well.
func (d *redactor) output(p []byte, cut bool, most int) (kept []byte, truncated bool) {
	p = d.scrub(p)
	if cut {
		p = p[:max(0, len(p)-maxSecret)]
	}
	if most <= 0 {
		most = MaxExecOutput
	}
	if most = min(most, MaxExecOutput); len(p) > most {
		return p[:most], true
	}
	return p, cut
}

// isHandle reports whether value is what begins like a handle, and nothing else:
// it is given no other value than a secret's.
func (d *redactor) isHandle(value string) bool {
	if d.cfg.Secrets == nil {
		return false
	}
	words := d.cfg.Secrets.Named(value)
	return len(words) == 1 && words[0] == value
}

// scrub takes the values of this run's secrets out of p: of what goes to the
// guest, and of what it hands to the host.
func (d *redactor) scrub(p []byte) []byte {
	if d.cfg.Secrets == nil {
		return p
	}
	return d.cfg.Secrets.Scrub(p, d.replaced)
}

func (d *redactor) scrubText(s string) string {
	if d.cfg.Secrets == nil || s == "" {
		return s
	}
	if out := d.cfg.Secrets.Scrub(bytesOf(s), d.replaced); string(out) != s {
		return string(out)
	}
	return s
}

// scrubFirst is scrub for a value that is masked next: a mask in the middle of a
// secret would leave its ends. It leaves the structure that masks go by, and to
// the scrub of the answer what stands across it.
func (d *redactor) scrubFirst(value []byte) []byte {
	out := d.scrub(value)
	if string(out) == string(value) || json.Valid(value) && !json.Valid(out) {
		return value
	}
	return out
}

// scrubResult keeps a result JSON: where a value was more than a part of a
// string, the whole becomes one.
func (d *redactor) scrubResult(result []byte) []byte {
	out := d.scrub(result)
	if len(out) == 0 || json.Valid(out) {
		return out
	}
	text, err := json.Marshal(string(out))
	if err != nil {
		return nil
	}
	return text
}

func (d *redactor) replaced(id string) {
	if d.cfg.Replaced != nil {
		d.cfg.Replaced(id, d.calling)
	}
}
