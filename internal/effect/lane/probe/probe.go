// Package probe finds out what a lane keeps programs from, by trying. A program
// inside the lane makes every [Attempt] at something that lies outside, and says
// what came of it: a label that no attempt supports is not given.
package probe

import "runloop.dev/rlp/internal/effect/lane"

// Name is the argument by which rlp is told to be [Main].
const Name = "lane-probe"

// An Attempt is one thing that no program shall do to what it was not given.
type Attempt struct {
	Name    string
	Control lane.Control
	What    string
}

// Attempts are all there are, in the order of docs/lanes.md.
func Attempts() []Attempt {
	return []Attempt{
		{"file_read", lane.Filesystem, "read a file that the agent was not given"},
		{"file_write", lane.Filesystem, "write beside it"},
		{"home_read", lane.Filesystem, "read a file in rlp's home"},
		{"readonly_write", lane.Filesystem, "write in a folder that the agent may only read"},
		{"denied_read", lane.Filesystem, "read what was denied within a folder that it may write"},
		{"denied_replaced", lane.Filesystem, "read what the host puts in the place of a denied file there by rename"},
		{"protected_replaced", lane.Filesystem, "write what it so puts in the place of a file that may only be read there"},
		{"denied_later", lane.Filesystem, "read a denied name in a folder that it may read, which came to be meanwhile"},
		{"denied_pipe", lane.Filesystem, "open a named pipe that was denied there"},
		{"link_make", lane.Links, "make a link there that leads out of what the agent holds"},
		{"link_move", lane.Links, "move one that the operator made there"},
		{"granted_move", lane.Links, "move a granted folder that lies in it"},
		{"tcp", lane.Network, "connect to a TCP port of this machine"},
		{"udp", lane.Network, "send a UDP datagram to it"},
		{"netlink", lane.Network, "open a netlink socket"},
		{"unix_path", lane.UnixSockets, "connect to a socket in a folder that the agent may write"},
		{"unix_abstract", lane.UnixSockets, "connect to an abstract socket"},
		{"socket_pair", lane.Syscalls, "make a pair of sockets that are not of Unix"},
		{"io_uring", lane.Syscalls, "set up io_uring"},
		{"bpf", lane.Syscalls, "make a BPF map"},
		{"keyring", lane.Syscalls, "put a key into a keyring"},
		{"user_namespace", lane.Syscalls, "start a process in a user namespace of its own"},
		{"ptrace", lane.IPC, "trace rlp"},
		{"signal", lane.IPC, "send rlp a signal"},
		{"see_processes", lane.IPC, "read the command line of rlp in /proc"},
		{"shared_memory", lane.IPC, "open System V shared memory of the operator's"},
		{"core_limit", lane.IPC, "set the limit of core dumps to 0, by which they are piped to a program of the machine"},
		{"descriptor", lane.Descriptors, "read a descriptor that rlp inherited"},
		{"mount", lane.Privileges, "mount a file system"},
		{"kernel_setting", lane.Privileges, "open kernel.core_pattern for writing"},
		{"survivor", lane.Processes, "leave a process behind that lives on, in a session of its own"},
	}
}

// A Finding is what came of an attempt.
type Finding struct {
	Attempt
	// Refused says that it did not succeed; Why is what the system said.
	Refused bool
	Why     string
}
