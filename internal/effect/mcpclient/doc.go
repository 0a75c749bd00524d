// Package mcpclient speaks with servers of tools, by the Model Context Protocol,
// as the host's own use: a server is asked for its tools and to call one, and
// nothing else. It gets no files, no models and no questions answered.
//
// Nothing that a server says is believed or waited for without bounds: a message
// has a largest size, a list a largest length, and a call ends with its context
// whatever the server does. What it says of its tools is [Digest]ed, so that who
// keeps the digest knows when it says something else.
//
// The package is told how to reach a server. It starts no program, dials nothing
// and touches no file.
package mcpclient
