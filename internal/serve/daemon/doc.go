// Package daemon is how one process does what another of the same user was
// asked to do: the words between them, the socket, and who is served.
//
// The law: nobody gets anything done that they could not have done themselves. So
// the one that serves asks the kernel, never the client, who that is: the same
// user with the same rights, in the same namespaces and root, under the same
// limits, with the same program; and the client shows that it may look into the
// process that serves. Whoever is not just like it does its work by itself.
//
// One connection is one invocation. The client sends one packet: its arguments,
// its environment and its three streams. It gets packets of one letter and what
// belongs to it: declined, so that it does the work itself; begun, after which
// nobody else may; ended, with the exit status. A connection that closes before
// begun has done nothing. The client may send one thing more: cancel.
package daemon

import "errors"

// What a request asks for.
const (
	Launch byte = 'l'
	Status byte = 's'
	Stop   byte = 'x'
)

// What is answered, and the one thing that a client says later.
const (
	declined byte = 'n'
	begun    byte = 'b'
	ended    byte = 'e'
	text     byte = 'j'
	cancel   byte = 'c'
)

// MaxRequest bounds a request, in bytes: what is longer is done by whoever wants
// it. It is less than what a socket takes as one packet by default.
const MaxRequest = 128 << 10

// maxAnswer bounds an answer.
const maxAnswer = 16 << 10

// MaxWords bounds the arguments of a request, and its variables.
const MaxWords = 8192

// SocketName is the socket's name in the folder of sockets and locks.
const SocketName = "daemon.sock"

// ErrUnsupported says that this system has no way to know who is at the other end.
var ErrUnsupported = errors.New("a daemon needs Linux")

// ErrServed says that another process serves here already.
var ErrServed = errors.New("another helper serves this home already")

// ErrNobody says that nobody serves.
var ErrNobody = errors.New("no helper serves this home")
