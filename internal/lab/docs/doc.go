// Package docs reads the project's pages, which are Markdown, for tests that do what
// a reader does: paste each block.
//
// The first word after a fence says what is in it, and a second one, which no reader
// sees, where it belongs:
//
//	```sh HOST       commands, run one block after the other by a shell of that host
//	```text HOST     what the commands before have printed, or will soon
//	```console HOST  both: lines that begin with "$ ", and below each what it prints
//	```go            a program, or a piece of one: it compiles
//	```json FILE     a configuration: it is right, and is written to the file for the commands
//	```              a drawing
//
// In an output "..." stands for anything, and MACs, times and durations for any other.
// What a page prints may come in any order, and with more beside it.
//
// The host "vm" is a guest that a block with QEMU's command line starts: its disk is the lab's, its network card the page's.
//
// The package's own tests find all pages. Each is run by itself: its hosts, "here" and
// "there" or those that it names, have 10.0.0.1 and 10.0.0.2 on eth0, a repository as
// cloned, and nothing in /run. What is not run is in a list, with the reason.
package docs
