package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
)

// A Denial is what a run was denied, and how often.
type Denial struct {
	Cap     string `json:"cap"`
	Target  string `json:"target"`
	Reason  string `json:"reason"`
	Layer   string `json:"layer,omitempty"`
	Label   string `json:"label,omitempty"` // the untrusted content that it follows from
	Count   int    `json:"count"`
	First   uint64 `json:"run_seq"` // the first record of it within the run
	Request string `json:"request"` // as rlp caps explain takes it
}

// Denials are what a run was denied, the most frequent first. What a language's
// own start asked for is none of it, and neither is what the launch recorded; empty
// says that it recorded that the run holds nothing.
func Denials(ctx context.Context, s *kb.Store, id string) (list []Denial, empty bool, err error) {
	list = []Denial{}
	at := map[Denial]int{}
	for r, err := range s.Audit(ctx, kb.Filter{Run: id, Decision: "deny"}) {
		if err != nil {
			return nil, false, err
		}
		if !r.Denied() {
			empty = empty || r.Decision.Reason == "caps_empty"
			continue
		}
		d := r.Decision
		n := Denial{Cap: d.Cap, Target: d.Target, Reason: d.Reason, Layer: d.Layer, Label: d.Label, Request: ask.About(d)}
		i, known := at[n]
		if !known {
			i = len(list)
			at[n] = i
			n.First = r.RunSeq
			list = append(list, n)
		}
		list[i].Count++
	}
	slices.SortStableFunc(list, func(a, b Denial) int { return cmp.Compare(b.Count, a.Count) })
	return list, empty, nil
}

// Text is the denial in one line of at most width characters.
func (d *Denial) Text(width int) string {
	head := d.Cap
	if d.Count > 1 {
		head = fmt.Sprintf("%s (%d times)", head, d.Count)
	}
	tail := d.Reason
	switch {
	case d.Label != "":
		tail += " because of " + d.Label
	case d.Layer != "":
		tail += " by " + d.Layer
	}
	if target := Middle(printable.Line(d.Target), max(20, width-len(head)-len(tail)-3)); target != "" {
		head += " " + target
	}
	return End(printable.Line(head+": "+tail), width)
}

// An Asked is what commands about an agent name: the bundle, and behind it the flags
// that say in which home and tenant.
type Asked struct{ Bundle, Flags string }

// Explain is the command that explains d, of a run of the agent: from the records alone
// where nobody knows which bundle that was.
func (a Asked) Explain(id string, d *Denial) string {
	bundle := ""
	if a.Bundle != Unknown {
		bundle = shell(a.Bundle) + " "
	}
	return fmt.Sprintf("rlp caps explain %s%s --run %s%s", bundle, shell(d.Request), Short(id), a.Flags)
}

// FlagsOf are the flags that say in which home and tenant, where these are not the
// usual ones.
func FlagsOf(dir, tenant string) (flags string) {
	if dir != "" {
		flags = " --home " + shell(dir)
	}
	if tenant != "" && tenant != home.DefaultTenant {
		flags += " --tenant " + shell(tenant)
	}
	return flags
}

// shell is a word as a shell reads it.
func shell(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+,="
	if word = printable.Line(word); word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Middle is text with its middle left out where it is longer than most characters:
// paths and addresses begin and end with what tells them apart.
func Middle(text string, most int) string {
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	begin := (most - 1) / 2
	return string(r[:begin]) + "…" + string(r[len(r)-(most-1-begin):])
}

// End is text cut at most characters.
func End(text string, most int) string {
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	return string(r[:most-1]) + "…"
}
