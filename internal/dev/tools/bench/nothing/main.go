// Nothing ends at once: what starting any Go program takes.
package main

func main() {}
