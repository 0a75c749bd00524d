package proxy

import (
	"net/http"

	"runloop.dev/rlp/caps"
)

// isOwn reports whether the connection is to one of rlp's own names.
func (k *conn) isOwn() bool { return caps.IsOwnName(k.names[0]) }

// inside serves a connection to one of rlp's own names.
func (k *conn) inside(port uint16) {
	t := Target{Way: usual(port), Host: k.host}
	if port == 80 {
		stop := impatient(k.c, helloTime)
		err := k.more()
		stop()
		if err != nil {
			return // who says nothing and goes was refused nothing
		}
		if k.head[0] != typeHandshake {
			k.serveWeb()
			return
		}
		t.Way = TLS
	}
	k.s.cfg.Policy.Refuse(t, Service, "names that end in "+caps.OwnSuffix+" answer plain HTTP at port 80")
}

// answer answers a request to one of rlp's own names. Whoever answers judges and
// records it.
func (k *conn) answer(w http.ResponseWriter, r *http.Request, t Target) {
	if !k.isFor(r.Host) {
		k.s.cfg.Policy.Refuse(t, ServerName, elsewhere)
		w.Header().Set("Connection", "close")
		http.Error(w, "refused by the policy of this network: "+elsewhere, http.StatusMisdirectedRequest)
		return
	}
	whole := false
	defer func() { // also when the answer broke off, which ends by a panic
		if !whole {
			reset(k.c) // or what there is would look like all of it
		}
	}()
	k.s.cfg.Inside.ServeHTTP(w, r)
	whole = true
}
