package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/netns/netnstest"
	"runloop.dev/rlp/internal/effect/proxy"
)

// services answer two names, and say what they were asked.
type services struct{ http.HandlerFunc }

func (services) Has(name string) bool { return name == "model.rlp" || name == "api.test.rlp" }

// Names of rlp's own are answered inside, in plain HTTP at port 80, whatever the policy
// grants; nothing of them is looked up or connected to.
func TestOwnNames(t *testing.T) {
	who(t, func(t *testing.T, c netnstest.Config) {
		w := newWorld(t, map[string]proxy.Ways{
			"api.test:80": proxy.HTTP, "other.rlp:80": proxy.HTTP, "model.rlp:443": proxy.TLS, "model.rlp:5432": proxy.Bytes,
			"model.rlp:80": proxy.Bytes,
		})
		w.policy.wild = ".rlp"
		w.inside = services{func(rw http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			rw.Header()["Date"] = nil
			_, _ = fmt.Fprintf(rw, "%s %s%s %s", r.Method, r.Host, r.RequestURI, b)
		}}
		w.web("80", nil, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(rw, "outside")
		}))
		const (
			end   = ` HTTP/1.1\r\nHost: model.rlp\r\nConnection: close\r\n\r\n`
			kept  = ` HTTP/1.1\r\nHost: model.rlp\r\n\r\n`
			other = "refused http://model.rlp:80 0 the request is for another host than the connection"
			no    = " 3 names that end in .rlp answer plain HTTP at port 80"
		)
		w.steps(c, []step{
			{"web model.rlp:80 GET /v1/x?y" + kept + "GET //a/../b" + end, "GET model.rlp/v1/x?y ; GET model.rlp//a/../b ", ""},
			{"web MODEL.rlp:80 OPTIONS *" + end, "OPTIONS model.rlp* ", ""},
			{
				`web api.test.rlp:80 POST /x HTTP/1.1\r\nHost: api.test.rlp\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi`,
				"POST api.test.rlp/x hi", "",
			},
			{`web model.rlp:80 GET / HTTP/1.1\r\nHost: api.test\r\n\r\n`, "421", other},
			{`web model.rlp:80 GET / HTTP/1.1\r\nHost: api.test.rlp\r\n\r\n`, "421", other},
			{
				`web api.test:80 GET / HTTP/1.1\r\nHost: model.rlp\r\n\r\n`, "421",
				strings.Replace(other, "model.rlp", "api.test", 1),
			},
			{
				`web api.test:80 GET / HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n`, "outside",
				"allowed http://api.test:80 GET",
			},
			{"tls model.rlp:80 model.rlp", "!reset", "refused https://model.rlp:80" + no},
			{"say other.rlp:80 x", "!lookup other.rlp on 198.18.0.2:53: no such host", "unknown other.rlp"},
			{"say x.model.rlp:80 x", "!lookup x.model.rlp on 198.18.0.2:53: no such host", "unknown x.model.rlp"},
		})
		// Refused at once, which makes a client try the name's other address as well.
		_ = w.run(c, "/proc/self/exe", "client", "tls model.rlp:443 model.rlp", "say model.rlp:5432 x")
		for _, want := range []string{"refused https://model.rlp:443" + no, "refused tcp://model.rlp:5432" + no} {
			if !slices.Contains(w.policy.said(), want) {
				t.Errorf("not recorded: %s; but %q", want, w.policy.said())
			}
		}
		if slices.ContainsFunc(w.lookups, func(name string) bool { return name != "api.test." }) || len(w.dialled) != 1 {
			t.Errorf("looked up %q, connected to %q", w.lookups, w.dialled)
		}
	})
}

// A program that goes away ends what is answered to it, what is answered comes as it is
// written, and an answer that broke off does not look whole.
func TestOwnNamesStream(t *testing.T) {
	w := newWorld(t, nil)
	ended := make(chan struct{})
	w.inside = services{func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, "data: 1\n\n")
		_ = http.NewResponseController(rw).Flush()
		if r.URL.Path == "/breaks" {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
		close(ended)
	}}
	out := w.run(netnstest.Config{User: true}, "bash", "-c", `exec 3< <(curl -sN http://model.rlp/); read -r line <&3; echo "$line"; kill $!`)
	if out != "data: 1\n" {
		t.Errorf("%q", out)
	}
	<-ended
	out = w.run(netnstest.Config{User: true}, "bash", "-c", `curl -s0 http://model.rlp/breaks; echo $?`)
	if out != "data: 1\n\n56\n" {
		t.Errorf("%q", out)
	}
}
