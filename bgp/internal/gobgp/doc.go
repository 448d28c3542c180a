// Package gobgp is an engine.Engine with sessions of gobgp. Nothing else in the module imports gobgp.
//
// What is to be known of gobgp v4.8.0:
//
//   - The best paths of a prefix are equal ones too (multipath). Events are differences: paths withdrawn and paths that are new or have
//     changed, by peer and number of add-path.
//   - That multipath is on is a variable of its package, written when a server starts. All servers of a process have it on; the race detector
//     sees the write of a server that starts beside another.
//   - It opens sockets in goroutines of its own, so in the network namespace of the process.
//   - Events are queued without a bound until they are taken: a Handler takes them at once, and peers have limits.
//   - With a limit of a peer's routes it goes through all of these with each message. It has none here: see loads.
//   - As a restarter (RFC 4724) it claims that forwarding goes on, which for a switch in the same process is not true: it is a helper only.
//   - Its limit of the paths of a prefix that a peer gets (add-path) is not looked at when a session begins.
//   - With add-path, a path that a peer has and whose new attributes an export policy rejects is not withdrawn.
//   - Export policies see our AS in front of paths to another AS, except those of the old path, if the new one is rejected.
//   - It passes on routes of peers to other peers as any router does, unless a policy says otherwise.
package gobgp
