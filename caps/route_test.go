package caps_test

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"runloop.dev/rlp/caps"
)

func (p pick) route() caps.Route {
	return caps.Route{
		Host: one(p, "a.x.org", "b.x.org", "x.org"), Methods: caps.ModeSet(1 + p(127)), Path: "/v1/*", Header: "X-Key",
		Secret: one(p, ids...),
	}
}

// A route is open when host and secret are, and no layer opens one: what a narrowed
// set lets through, the set before it did.
func TestNoLayerOpensARoute(t *testing.T) {
	open, closed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := newPick(t, "seed")
		route := p.route()
		before := mustBase(t, p.entries(8), caps.Limits{})
		if p(2) == 0 {
			before = everything(t)
		}
		after := narrow(t, before, p.layer("l"))
		for m := range caps.Mode(7) {
			q := route.Requests(m)
			if got := after.Route(&route, m).Allow; got != (after.Check(q[0]).Allow && after.Check(q[1]).Allow) {
				t.Fatalf("%s by %d: %v is not what it asks for", &route, m, got)
			} else if got && !before.Route(&route, m).Allow {
				t.Fatalf("%s by %d: the layer opened it", &route, m)
			} else if got {
				open++
			} else if before.Route(&route, m).Allow {
				closed++
			}
		}
	})
	if open == 0 || closed == 0 {
		t.Errorf("%d stayed open, %d were closed: the test says nothing", open, closed)
	}
}

// The most specific route takes a request; other methods, hosts and paths have none.
func TestWhichRouteTakesARequest(t *testing.T) {
	get, post := caps.ModeSet(1), caps.ModeSet(4)
	list := []caps.Route{
		{Host: "a.x.org", Methods: get | post, Path: "/v1/*", Secret: "all"},
		{Host: "a.x.org", Methods: post, Path: "/v1/admin/*", Secret: "admin"},
		{Host: "a.x.org", Methods: get, Path: "/status", Secret: "status"},
	}
	for _, x := range []struct {
		host, path string
		mode       caps.Mode
		secret     string
	}{
		{"a.x.org", "/v1/x", 0, "all"},
		{"a.x.org", "/v1/admin/x", 2, "admin"},
		{"a.x.org", "/v1/admin/x", 0, "all"},
		{"a.x.org", "/v1/", 0, "all"},
		{"a.x.org", "/status", 0, "status"},
		{"a.x.org", "/v1", 0, ""},
		{"a.x.org", "/V1/x", 0, ""},
		{"a.x.org", "/v1x", 0, ""},
		{"a.x.org", "/status/", 0, ""},
		{"a.x.org", "/status", 2, ""},
		{"b.x.org", "/v1/x", 0, ""},
		{"a.x.org", "/v1/x", 5, ""},
		{"a.x.org", "/", 0, ""},
	} {
		got := ""
		if r := caps.RouteOf(list, x.host, x.mode, x.path); r != nil {
			got = r.Secret
		}
		if got != x.secret {
			t.Errorf("%s%s by %d: %q, want %q", x.host, x.path, x.mode, got, x.secret)
		}
	}
}

// Each of these leads, on some server, out of the folder that it seems to lie in,
// and is no path of a route.
var crooked = []string{
	"", "v1", "*", "/v1/../admin", "/v1/./x", "/v1//x", "//v1/x", "/v1/%2e%2e/admin", "/v1/%2E%2e/x", "/v1/.%2e/x",
	"/v1/%2f..%2fadmin", "/v1%2fadmin", "/v1/%5c..%5cadmin", `/v1\admin`, "/v1/..;/admin", "/v1/..;x=y/admin",
	"/v1/;/../admin", "/v1/;x/admin", "/v1/..%3b/admin", "/v1/..%3Bx=y/admin", "/v1/.%2e%3b/admin", "/v1/%3bx/admin",
	"/v1/..%3f/admin", "/v1/..%23/admin", "/v1/..%20/admin", "/v1/.%20./admin", "/v1/..%20./admin", "/v1/%20/admin",
	"/v1/.../admin", "/v1/%c0%ae%c0%ae/admin", "/v1/%e0%80%ae%e0%80%ae/admin", "/v1/%ff",
	"/v1/%252e%252e/admin", "/v1/%00", "/v1/%", "/v1/%4", "/v1/%zz", "/v1/ x", "/v1/\t",
	"/v1/x#y", "/v1/x?y", "/v1/ä", "/v1/\x7f", "/v1/%7f", "/v1/%0d%0aHost:x", `/v1/"`, "/v1/<", "/v1/x/..", "/v1/.",
	"/" + strings.Repeat("a", caps.MaxRoutePath),
}

func TestRoutePaths(t *testing.T) {
	for _, raw := range crooked {
		if got, err := caps.RoutePath(raw); err == nil {
			t.Errorf("%.40q is taken as %q", raw, got)
		}
	}
	for raw, want := range map[string]string{
		"/": "/", "/v1/": "/v1/", "/v1/a.b_c~d-e": "/v1/a.b_c~d-e", "/%76%31/%41": "/v1/A", "/v1/%c3%a4": "/v1/%C3%A4",
		"/v1/a%20b": "/v1/a%20b", "/v1/a%3bb": "/v1/a%3Bb", "/v1/a..%3f": "/v1/a..%3F", "/v1/..a%20": "/v1/..a%20",
		"/v1/x;y=z": "/v1/x;y=z", "/v1/a:b@c,d": "/v1/a:b@c,d",
		"/v1/..a": "/v1/..a",
	} {
		if got, err := caps.RoutePath(raw); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", raw, got, err, want)
		}
	}
}

// servers are how servers of different makes read the path of a request.
var servers = map[string]func(raw string) string{
	"decodes once, and cleans": func(raw string) string { return path.Clean(decoded(raw)) },
	"decodes twice":            func(raw string) string { return path.Clean(decoded(decoded(raw))) },
	"cleans, then decodes":     func(raw string) string { return decoded(path.Clean(raw)) },
	"takes \\ for /": func(raw string) string {
		return path.Clean(strings.ReplaceAll(decoded(raw), `\`, "/"))
	},
	"drops parameters": func(raw string) string {
		parts := strings.Split(raw, "/")
		for i, p := range parts {
			parts[i], _, _ = strings.Cut(p, ";")
		}
		return path.Clean(decoded(strings.Join(parts, "/")))
	},
	"decodes, then drops parameters":            apart(";", ""),
	"decodes, then parts query and fragment":    apart("?#", ""),
	"drops blanks and dots at the end of names": apart("", " ."),
	"reads overlong UTF-8": func(raw string) string {
		return path.Clean(strings.NewReplacer("\xc0\xae", ".", "\xe0\x80\xae", ".").Replace(decoded(raw)))
	},
	"net/http": func(raw string) string {
		u, err := url.ParseRequestURI(raw)
		if err != nil {
			return ""
		}
		mux := http.NewServeMux()
		mux.HandleFunc("/v1/", func(http.ResponseWriter, *http.Request) {})
		mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
		if _, pattern := mux.Handler(&http.Request{Method: "GET", URL: u}); pattern == "/v1/" {
			return "/v1/" // or a redirect to there
		}
		return "/"
	},
}

// apart reads each name between slashes as far as one of ends, without blanks behind.
func apart(ends, blanks string) func(string) string {
	return func(raw string) string {
		parts := strings.Split(decoded(raw), "/")
		for i, p := range parts {
			if at := strings.IndexAny(p, ends); at >= 0 {
				p = p[:at]
			}
			for p != ".." && p != "." && p != "" && strings.ContainsAny(p[len(p)-1:], blanks) {
				p = p[:len(p)-1]
			}
			parts[i] = p
		}
		return path.Clean(strings.Join(parts, "/"))
	}
}

func decoded(s string) string {
	out, err := url.PathUnescape(s)
	if err != nil {
		return s
	}
	return out
}

// Whatever a request says, what a route of /v1/* takes of it is below /v1 to every
// server that reads it; the control is the comparison of the text alone.
func FuzzRoutePath(f *testing.F) {
	for _, raw := range append(crooked, "/v1/x", "/%76%31/%41", "/v1/x;y=z", "/v1/%c3%a4/..a") {
		f.Add(raw)
	}
	route := caps.Route{Methods: 1, Path: "/v1/*"}
	f.Fuzz(func(t *testing.T, raw string) {
		clean, err := caps.RoutePath(raw)
		if err != nil {
			return
		}
		if again, err := caps.RoutePath(clean); err != nil || again != clean {
			t.Fatalf("%q is %q, which is %q, %v", raw, clean, again, err)
		}
		for name, read := range servers {
			if seen := read(clean); route.Takes(0, clean) && seen != "/v1" && !strings.HasPrefix(seen, "/v1/") {
				t.Fatalf("%q is taken as %q, and a server that %s sees %q", raw, clean, name, seen)
			}
		}
	})
}

// Comparing the text alone is the control of what FuzzRoutePath holds: each way to
// read a path is led out of the folder by one of the crooked ones.
func TestControlCrookedPaths(t *testing.T) {
	for name, read := range servers {
		led := false
		for _, raw := range crooked {
			led = led || strings.HasPrefix(raw, "/v1/") && read(raw) != "/v1" && !strings.HasPrefix(read(raw), "/v1/")
		}
		if !led && name != "net/http" {
			t.Errorf("no server that %s is led out", name)
		}
	}
}
