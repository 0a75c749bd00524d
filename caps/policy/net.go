package policy

import (
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// readNet reads net: hosts, or a table of hosts, allow_http and methods. A base
// is https alone without allow_http; a layer narrows hosts over both schemes,
// methods where it names some, and takes http away where it says so.
func readNet(r *reader, k key, v *tomlfile.Value) {
	switch v.Kind {
	case tomlfile.TableKind:
		readNetTable(r, v)
	default:
		all := caps.AllModes(caps.Net)
		r.bound(caps.Net, all, v)
		if r.layer {
			r.hosts(k.name, v, caps.HTTPS, caps.HTTP)
		} else {
			r.hosts(k.name, v, caps.HTTPS, 0)
		}
	}
}

func readNetTable(r *reader, v *tomlfile.Value) {
	t := v.Table
	r.known(t, "net", []string{"hosts", "allow_http", "methods"})
	https, http := caps.HTTPS, caps.HTTP
	if !r.layer {
		http = 0
	}
	httpEntry, saysHTTP := t.Get("allow_http")
	if saysHTTP && r.is(&httpEntry.Value, "allow_http", tomlfile.Bool) {
		http = 0
		if httpEntry.Value.Bool {
			http = caps.HTTP
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
		https, http = https&set, http&set
	}
	hosts, saysHosts := t.Get("hosts")
	if saysHosts && !r.is(&hosts.Value, "hosts", tomlfile.Array) {
		return
	}
	if !r.layer {
		if !saysHosts || len(hosts.Value.Items) == 0 {
			r.add(v.Pos, CodeNoHosts, `hosts = ["api.example.com"]`, "net without hosts grants nothing")
			return
		}
		r.hosts("hosts", &hosts.Value, https, http)
		return
	}
	r.boundNet(v, hosts, https, http)
}

// boundNet makes the bounds of a layer's table: every mode where hosts are
// named, else only the modes that allow_http and methods take away.
func (r *reader) boundNet(v *tomlfile.Value, hosts *tomlfile.Entry, https, http caps.ModeSet) {
	if hosts != nil {
		r.bound(caps.Net, caps.AllModes(caps.Net), v)
		r.hosts("hosts", &hosts.Value, https, http)
		return
	}
	if taken := caps.AllModes(caps.Net) &^ (https | http); taken != 0 {
		r.bound(caps.Net, taken, v)
	}
}

// hosts adds an entry for every host of an array, over https and http in the
// modes given. Both have one place: they are one thing that was written.
func (r *reader) hosts(name string, v *tomlfile.Value, https, http caps.ModeSet) {
	r.strings(name, v, func(item *tomlfile.Value) {
		secure, plain, ok := r.host(item)
		if !ok {
			return
		}
		var gs []caps.Grant
		switch {
		case secure == plain:
			gs = append(gs, caps.Grant{Family: caps.Net, Modes: https | http, Scope: secure})
		default:
			gs = append(
				gs,
				caps.Grant{Family: caps.Net, Modes: https, Scope: secure},
				caps.Grant{Family: caps.Net, Modes: http, Scope: plain},
			)
		}
		gs = slices.DeleteFunc(gs, func(g caps.Grant) bool { return g.Modes == 0 })
		r.grant(item, item.Str, gs...)
	})
}

// host returns the scopes of an entry over https and over http.
func (r *reader) host(item *tomlfile.Value) (secure, plain string, ok bool) {
	s := item.Str
	r.hidden(item)
	switch {
	case strings.Contains(s, "://"):
		_, rest, _ := strings.Cut(s, "://")
		rest, _, _ = strings.Cut(rest, "/")
		r.add(item.Pos, CodeBadHost, "write "+rest, "%q is an address of a page, not a host", s)
		return "", "", false
	case s == "*":
		r.add(item.Pos, CodeBadHost, "name the hosts", "%q: no policy grants every host", s)
		return "", "", false
	case strings.HasPrefix(s, "*.") && !r.needs02(item.Pos, "the wildcard "+s):
		return "", "", false
	}
	secure, err := caps.WildcardPort("https", s)
	if err == nil {
		plain, err = caps.WildcardPort("http", s)
	}
	if err != nil {
		r.add(item.Pos, CodeBadHost, "", "%v", err)
		return "", "", false
	}
	return secure, plain, true
}

func (r *reader) methods(v *tomlfile.Value) (caps.ModeSet, bool) {
	if !r.is(v, "methods", tomlfile.Array) || !r.needs02(v.Pos, "methods") {
		return 0, false
	}
	var set caps.ModeSet
	good := true
	r.strings("methods", v, func(item *tomlfile.Value) {
		https, _ := caps.NetModes("https", item.Str)
		http, _ := caps.NetModes("http", item.Str)
		switch {
		case !slices.Contains(methodNames(), item.Str):
			r.add(item.Pos, CodeBadMethod, "one of "+strings.Join(methodNames(), ", "),
				"%q is not a method that can be granted by itself", item.Str)
			good = false
		case set&https != 0:
			r.add(item.Pos, CodeDuplicate, "", "%q is there already", item.Str)
		}
		set |= https | http
	})
	return set, good
}
