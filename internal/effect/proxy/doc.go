// Package proxy serves the sockets of a network that [netns.Make] made: it answers
// queries for names, accepts each connection with the destination that the program
// asked for, and connects to that outside only after a [Policy] allowed it.
//
// A name is known by an address of ours that stands for it, which is the authority
// for where a connection goes: no name is looked up outside before a connection to
// it is allowed. What is said on a connection is held against the name that was
// judged: the server name of TLS, the Host of each request of plain HTTP. What is
// refused is reset; nothing of it leaves.
//
// Names that end in ".rlp" are answered here and lead nowhere.
//
// It decides nothing and records nothing by itself.
package proxy
