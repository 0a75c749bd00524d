package ask

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// A Route is a route of a base, and what of it is open.
type Route struct {
	Route  string   `json:"route"`
	Source caps.Pos `json:"source"`
	Open   []string `json:"open"`             // the requests that it takes
	Closed []string `json:"closed,omitempty"` // what is missing for others, each with why
}

// routesIn are the routes of a base, as a set that was made of it leaves them.
func routesIn(set caps.Set, list []caps.Route) []Route {
	told := []Route{}
	for i := range list {
		r := &list[i]
		t := Route{Route: r.String(), Source: r.Pos, Open: []string{}}
		for m := range caps.Mode(32) {
			if !r.Methods.Has(m) {
				continue
			}
			asked := r.Requests(m)
			if set.Route(r, m).Allow {
				t.Open = append(t.Open, asked[0].String())
			}
			for _, q := range asked {
				if d := set.Check(q); !d.Allow {
					t.Closed = append(t.Closed, q.String()+": "+d.Code.String()+by(set, d))
				}
			}
		}
		slices.Sort(t.Closed)
		t.Closed = slices.Compact(t.Closed)
		told = append(told, t)
	}
	return told
}

// by is the layer that a denial is of; "" for the base.
func by(set caps.Set, d caps.Decision) string {
	if d.Layer == 0 {
		return ""
	}
	return " (" + set.LayerName(d.Layer) + ")"
}

// RouteLines are routes for a person, what is closed of each below it.
func RouteLines(list []Route) []string {
	var lines []string
	for _, r := range list {
		state := "open"
		if len(r.Open) == 0 {
			state = "closed"
		}
		lines = append(lines, fmt.Sprintf("%-6s %s", state, r.Route))
		for _, c := range r.Closed {
			lines = append(lines, "       without "+c)
		}
	}
	return lines
}

// onRoute is what a URL of http://HOST.rlp asks for, by the route of the policy that
// takes it; is says that q asks about one.
func (s *Subject) onRoute(q Query) (list []caps.Request, is bool, err error) {
	u, err := url.Parse(q.Text)
	if err != nil || u.Scheme != "http" || !strings.HasSuffix(u.Host, caps.OwnSuffix) {
		return nil, false, nil
	}
	path, err := caps.RoutePath(u.EscapedPath())
	if err != nil {
		return nil, true, usagef("%s: %w", q.Text, err)
	}
	methods := []string{q.Method}
	if q.Method == "" {
		methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	}
	host := strings.TrimSuffix(u.Host, caps.OwnSuffix)
	for _, method := range methods {
		m, ok := caps.NetMode("https", method)
		if !ok {
			return nil, true, usagef("--method %s: no method of HTTP, such as GET or POST", method)
		}
		if r := caps.RouteOf(s.Policy.Routes, host, m, path); r != nil {
			asked := r.Requests(m)
			list = append(list, asked[0], asked[1])
		}
	}
	if len(list) == 0 {
		return nil, true, usagef("%s: no [[inject]] of the policy takes this, and a program is answered 403", q.Text)
	}
	return list, true, nil
}
