package analysis

import (
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// A host is one entry of hosts: what it grants over each scheme, and the uses.
type host struct {
	text          string // as a policy writes it
	secure, plain string // its scopes over https and http
	uses          []*tally
}

// net writes the table of net: hosts with the ports that were used, http only
// where it was used, methods as far as they are known, and places that bytes went to.
func (b *builder) net() {
	var web, places []*tally
	for _, t := range b.uses[caps.Net] {
		if caps.TCP.Has(t.mode) {
			places = append(places, t)
		} else {
			web = append(web, t)
		}
	}
	switch {
	case len(web) > 0:
		b.web(web)
	case len(places) == 0:
		b.never("net", "[]")
		return
	case b.opt.Override:
		b.table.WriteString("hosts = []\n")
	}
	lines := make([]line, len(places))
	for i, t := range places {
		lines[i] = line{quote(t.name), b.about(t)}
	}
	switch {
	case len(lines) > 0:
		writeList(&b.table, "tcp", lines)
	case b.opt.Override && b.learner.holdsBytes():
		b.table.WriteString("tcp = []\n")
	}
}

// holdsBytes reports whether any run held a place for bytes over TCP.
func (l *Learner) holdsBytes() bool {
	for _, r := range l.runs {
		for _, g := range r.held.Grants() {
			if g.Family == caps.Net && g.Modes&caps.TCP != 0 {
				return true
			}
		}
	}
	return false
}

// web writes what is said of requests.
func (b *builder) web(uses []*tally) {
	methods, http := methodsOf(uses)
	hosts := hostsOf(uses)
	lines := make([]line, len(hosts))
	for i, h := range hosts {
		lines[i] = line{quote(h.text), b.about(h.uses...) + "; " + methodWords(h.uses)}
	}
	writeList(&b.table, "hosts", lines)
	if http || b.opt.Override {
		fmt.Fprintf(&b.table, "allow_http = %t\n", http)
	}
	granted := caps.ModeSet(0xff)
	if names, all := methodNames(methods); !all {
		granted = methods
		fmt.Fprintf(&b.table, "methods = [%s]\n", strings.Join(names, ", "))
	}
	for _, h := range hosts {
		b.unused(h, granted, http)
	}
}

// unused says, or takes away, what an entry grants and was not used.
func (b *builder) unused(h *host, methods caps.ModeSet, http bool) {
	grants := []caps.Grant{{Family: caps.Net, Modes: methods, Scope: h.secure}}
	if http {
		grants = append(grants, caps.Grant{Family: caps.Net, Modes: methods << 8, Scope: h.plain})
	}
	for _, g := range grants {
		for _, t := range b.uses[caps.Net] {
			if t.name == g.Scope {
				g.Modes &^= 1 << t.mode
			}
		}
		if g.Modes != 0 {
			b.take(g, "never used; hosts, methods and allow_http count for each other")
		}
	}
}

// hostsOf makes one entry of what was used of a host at a port, and of both
// ports that a scheme implies.
func hostsOf(uses []*tally) []*host {
	https := map[string]bool{}
	for _, t := range uses {
		if caps.HTTPS.Has(t.mode) {
			https[t.name] = true
		}
	}
	var list []*host
	of := func(text, secure, plain string) *host {
		for _, h := range list {
			if h.text == text {
				return h
			}
		}
		list = append(list, &host{text: text, secure: secure, plain: plain})
		return list[len(list)-1]
	}
	for _, t := range uses {
		name := strings.TrimSuffix(strings.TrimSuffix(t.name, ":443"), ":80")
		text, secure, plain := t.name, t.name, t.name
		if both := name + ":443"; name != t.name && https[both] && (t.name == both && caps.HTTPS.Has(t.mode) ||
			t.name != both && !caps.HTTPS.Has(t.mode)) {
			text, secure, plain = name, both, name+":80"
		}
		h := of(text, secure, plain)
		h.uses = append(h.uses, t)
	}
	return list
}

// methodsOf are the method classes that were used over either scheme, and
// whether any was over http.
func methodsOf(uses []*tally) (methods caps.ModeSet, http bool) {
	for _, t := range uses {
		methods |= 1 << (t.mode % 8)
		http = http || caps.HTTP.Has(t.mode)
	}
	return methods, http
}

// methodNames are the words of methods; all says that a policy that names none
// is as narrow as one can be written.
func methodNames(methods caps.ModeSet) (names []string, all bool) {
	known := caps.ModeSet(0)
	for _, w := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		if m, ok := caps.NetMode("https", w); ok {
			known |= 1 << m
			if methods.Has(m) {
				names = append(names, quote(w))
			}
		}
	}
	return names, methods&^known != 0
}

func methodWords(uses []*tally) string {
	methods, _ := methodsOf(uses)
	names, _ := methodNames(methods)
	switch {
	case methods&(methods-1) == 0:
		return "by " + strings.Join(names, "")
	case methods == 0xff:
		return "the methods are not in the record; all were held"
	}
	return "the methods are not in the record; those held were " + strings.Join(names, ", ")
}

// secrets writes ids with the hosts that their values went to.
func (b *builder) secrets() {
	type secret struct {
		id    string
		hosts []string
		bare  bool // its value went to a program
		got   bool // its handle was asked for
		uses  []*tally
	}
	var list []*secret
	for _, t := range b.uses[caps.Secrets] {
		id, at, bound := strings.Cut(t.name, "@")
		i := slices.IndexFunc(list, func(s *secret) bool { return s.id == id })
		if i < 0 {
			i = len(list)
			list = append(list, &secret{id: id})
		}
		s := list[i]
		s.uses = append(s.uses, t)
		switch {
		case bound:
			s.hosts = append(s.hosts, quote(strings.TrimSuffix(at, ":443")))
		case t.mode == caps.Use:
			s.bare = true
		default:
			s.got = true
		}
	}
	lines := make([]line, len(list))
	for i, s := range list {
		value := fmt.Sprintf("{ id = %s, hosts = [%s] }", quote(s.id), strings.Join(s.hosts, ", "))
		if s.bare {
			value = quote(s.id)
			b.wider(caps.Grant{Family: caps.Secrets, Modes: caps.AllModes(caps.Secrets), Scope: s.id},
				"its value went to a program, so that no hosts can be named")
		}
		if !s.got {
			b.take(caps.Grant{Family: caps.Secrets, Modes: caps.Modes(caps.Get), Scope: s.id}, "its handle was never asked for")
		}
		lines[i] = line{value, b.about(s.uses...)}
	}
	b.list("secrets", lines)
}
