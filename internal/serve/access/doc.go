// Package access says who asks of the service: it makes a [service.Caller] of
// what a connection and a request prove, and of nothing that a request merely
// says.
//
// Its law: one proof is judged, the strongest that was brought, and where it
// does not hold nothing else is tried. What is unknown, cannot be read or is out
// of date is nobody. A caller's tenant comes from its proof; only the operator,
// whom the kernel names, may choose one. Who asks without a proof learns what to
// bring, and never whether a token exists.
//
// It does not know what is asked for, nor what a token's grant means: that is
// read for it.
package access
