package policy

import (
	"errors"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// readNet reads net: hosts, or a table of hosts, allow_http, methods and tcp. A
// base is https alone without allow_http; a layer narrows hosts over both schemes
// and bytes over TCP, methods where it names some, and takes http away where it
// says so. What methods bound cannot be said of bytes, which they take away.
func readNet(r *reader, k key, v *tomlfile.Value) {
	switch v.Kind {
	case tomlfile.TableKind:
		readNetTable(r, v)
	default:
		all := caps.AllModes(caps.Net)
		r.bound(caps.Net, all, v)
		if r.layer {
			r.hosts(k.name, v, netModes{caps.HTTPS, caps.HTTP, caps.TCP})
		} else {
			r.hosts(k.name, v, netModes{https: caps.HTTPS})
		}
	}
}

// netModes are the modes of Net by what is spoken.
type netModes struct{ https, http, tcp caps.ModeSet }

func (m netModes) all() caps.ModeSet { return m.https | m.http | m.tcp }

func readNetTable(r *reader, v *tomlfile.Value) {
	t := v.Table
	r.known(t, "net", []string{"hosts", "allow_http", "methods", "tcp"})
	modes := netModes{caps.HTTPS, caps.HTTP, caps.TCP}
	if !r.layer {
		modes = netModes{https: caps.HTTPS}
	}
	httpEntry, saysHTTP := t.Get("allow_http")
	if saysHTTP && r.is(&httpEntry.Value, "allow_http", tomlfile.Bool) {
		modes.http = 0
		if httpEntry.Value.Bool {
			modes.http = caps.HTTP
		}
		if httpEntry.Value.Bool && !r.layer {
			r.add(httpEntry.Value.Pos, CodeAllowHTTP, "", "allow_http lets what the agent sends be read on the way")
		}
	}
	methods, saysMethods := t.Get("methods")
	if saysMethods {
		set, ok := r.methods(&methods.Value)
		if !ok {
			return
		}
		modes = netModes{https: modes.https & set, http: modes.http & set}
	}
	hosts, saysHosts := t.Get("hosts")
	if saysHosts && !r.is(&hosts.Value, "hosts", tomlfile.Array) {
		return
	}
	tcp, saysTCP := t.Get("tcp")
	if saysTCP && (!r.is(&tcp.Value, "tcp", tomlfile.Array) || !r.needs02(tcp.Value.Pos, "tcp")) {
		return
	}
	if saysTCP {
		modes.tcp = 0 // the list says where to
	}
	switch {
	case r.layer && saysTCP && !saysHosts && !saysMethods && !saysHTTP:
		r.bound(caps.Net, caps.TCP, v)
	case r.layer:
		r.boundNet(v, hosts, modes)
	case (!saysHosts || len(hosts.Value.Items) == 0) && (!saysTCP || len(tcp.Value.Items) == 0):
		r.add(v.Pos, CodeNoHosts, `hosts = ["api.example.com"]`, "net without hosts grants nothing")
	case saysHosts:
		r.hosts("hosts", &hosts.Value, modes)
	}
	if saysTCP {
		readPlaces(r, &tcp.Value)
	}
}

// readPlaces adds an entry of bytes for every place of an array.
func readPlaces(r *reader, v *tomlfile.Value) {
	if !r.layer && len(v.Items) > 0 {
		r.add(v.Pos, CodeTCP, "", "tcp lets programs send and hear anything there: nobody looks into it")
	}
	r.strings("tcp", v, func(item *tomlfile.Value) {
		r.hidden(item)
		g, err := caps.ParseGrant("network:tcp:" + item.Str)
		switch {
		case err != nil:
			r.add(item.Pos, CodeBadHost, "", "%v", errors.Unwrap(err))
		case g.Scope[0] == '*':
			r.add(item.Pos, CodeBadHost, "name the places", "%q: bytes are granted to one host and port each", item.Str)
		default:
			r.grant(item, item.Str, g)
		}
	})
}

// boundNet makes the bounds of a layer's table: every mode where hosts are
// named, else only the modes that the other keys take away.
func (r *reader) boundNet(v *tomlfile.Value, hosts *tomlfile.Entry, modes netModes) {
	if hosts != nil {
		r.bound(caps.Net, caps.AllModes(caps.Net), v)
		r.hosts("hosts", &hosts.Value, modes)
		return
	}
	if taken := caps.AllModes(caps.Net) &^ modes.all(); taken != 0 {
		r.bound(caps.Net, taken, v)
	}
}

// hosts adds an entry for every host of an array, in the modes given. What is of
// https and what is of http has one place: it is one thing that was written.
func (r *reader) hosts(name string, v *tomlfile.Value, modes netModes) {
	r.strings(name, v, func(item *tomlfile.Value) {
		secure, plain, ok := r.host(item)
		if !ok {
			return
		}
		gs := []caps.Grant{{Family: caps.Net, Modes: modes.https | modes.http, Scope: secure}}
		if secure != plain {
			gs[0].Modes = modes.https
			gs = append(gs, caps.Grant{Family: caps.Net, Modes: modes.http, Scope: plain},
				caps.Grant{Family: caps.Net, Modes: modes.tcp, Scope: plain})
		}
		gs = append(gs, caps.Grant{Family: caps.Net, Modes: modes.tcp, Scope: secure})
		gs = slices.DeleteFunc(gs, func(g caps.Grant) bool { return g.Modes == 0 })
		r.grant(item, item.Str, gs...)
	})
}

// host returns the scopes of an entry over https and over http.
func (w *words) host(item *tomlfile.Value) (secure, plain string, ok bool) {
	s := item.Str
	w.hidden(item)
	switch {
	case strings.Contains(s, "://"):
		_, rest, _ := strings.Cut(s, "://")
		rest, _, _ = strings.Cut(rest, "/")
		w.add(item.Pos, CodeBadHost, "write "+rest, "%q is an address of a page, not a host", s)
		return "", "", false
	case s == "*":
		w.add(item.Pos, CodeBadHost, "name the hosts", "%q: no policy grants every host", s)
		return "", "", false
	case strings.HasPrefix(s, "*.") && !w.needs02(item.Pos, "the wildcard "+s):
		return "", "", false
	}
	secure, err := caps.WildcardPort("https", s)
	if err == nil {
		plain, err = caps.WildcardPort("http", s)
	}
	if err != nil {
		w.add(item.Pos, CodeBadHost, "", "%v", err)
		return "", "", false
	}
	return secure, plain, true
}

func (w *words) methods(v *tomlfile.Value) (caps.ModeSet, bool) {
	if !w.is(v, "methods", tomlfile.Array) || !w.needs02(v.Pos, "methods") {
		return 0, false
	}
	var set caps.ModeSet
	good := true
	w.strings("methods", v, func(item *tomlfile.Value) {
		https, _ := caps.NetModes("https", item.Str)
		http, _ := caps.NetModes("http", item.Str)
		switch {
		case !slices.Contains(methodNames(), item.Str):
			w.add(item.Pos, CodeBadMethod, "one of "+strings.Join(methodNames(), ", "),
				"%q is not a method that can be granted by itself", item.Str)
			good = false
		case set&https != 0:
			w.add(item.Pos, CodeDuplicate, "", "%q is there already", item.Str)
		}
		set |= https | http
	})
	return set, good
}
