// Package egress is HTTP, and connections of programs, out of the machine. A name is resolved once, every
// address that it has is judged, and one of the judged addresses is what is
// connected to: nothing is looked up a second time between check and use.
//
// It decides about addresses, never about hosts: which hosts may be reached is
// the gate's word, said before each request and again before each redirect,
// none of which is followed here. Names may only lead to public addresses. What
// is not public is reached by an address that is written as such, or by the word
// localhost, when the caller says that a grant names exactly that; link-local
// addresses, cloud metadata, multicast and the like are never reached.
//
// Proxies of the environment are not used, certificates are always verified,
// and there is no way to configure either.
package egress
