// Package chaos breaks everything around a tunnel while traffic runs through it, and has
// only tests. Each of them ends the same way: traffic flows again within a second of the
// cause's end, in both directions, and every frame that is missing is found in a counter,
// ours or that of the cause.
//
//	cause                                       test
//	------------------------------------------  --------------------------------------------------
//	loss on the wire                            TestWire/loss
//	duplication on the wire                     TestWire/duplication
//	corruption on the wire                      TestWire/corruption
//	loss, duplication, reordering, delay and    TestFaultyTAP
//	  corruption by porttest.Faulty
//	every bit of a packet flipped               TestFlippedBits (VXLAN, GPE, IP-in-IP), TestFlippedBitsSwitch
//	reordering, loss, duplication by a Network  TestFaultyMemory
//	link down and up                            TestWire/link down; kernel.TestLinkDownAndUp
//	carrier lost and back                       TestWire/carrier lost; kernel.TestCarrierLostAndBack
//	address removed and back                    TestWire/address removed; kernel.TestAddressRemovedAndBack
//	another address (SetUnderlay)               TestWire/another address; vtep.TestSetUnderlay*;
//	                                            TestSetUnderlayMemory; node.TestApplyMovesTunnel
//	underlay device deleted and made anew       TestWire/device deleted; underlay.TestResilience
//	TAP deleted under traffic                   kernel.TestDeviceDeletedAndBack
//	nobody reads a port                         TestStalledPipe, TestStalledTAP, TestStalledBuffered
//	receive buffer of the underlay full         TestStalledUnderlay
//	transmit buffer of the underlay full        underlay.TestSendBufferFull, underlay.TestIPSendBufferFull
//	EPERM (a firewall drops or rejects output)  TestWire/output dropped, TestWire/output rejected
//	ENOBUFS (a short queue)                     TestWire/short queue
//	no descriptor left (EMFILE)                 TestNoDescriptors; underlay.TestUDPRunsWithoutSockets
//	peer away and back                          TestWire/peer away; underlay.TestResilience
//	a storm of ICMP errors                      TestWire/peer rejects; underlay.TestIPDeadPeers
//	runs refused by the way out (EIO)           underlay.TestTCPWhileRunsAreRefused
//	a part that cannot be had in a reload       node.TestApplyFailsUnderTraffic
package chaos
