package worst

// configured is filled by who writes the configuration, calls the library, or runs a control
// plane, with as many things as he names, or up to 16 for each (bfd.reports.list): no stranger has any in it.
const configured = `
bfd.Prober.hosts bfd.Prober.locals bfd.Prober.on bgp.Speaker.peers bgp.link.networks bgp.rules.linkBy bgp.rules.links bgp.Speaker.said bgp.inbox.taken bgp.table.used bgp.filterList.rules bgp.routes.n bgp.rules.blocks bgp.rules.macs bgp.rules.networks bgp.rules.own
bfd.Speaker.byMy bfd.Speaker.byPeer bfd.Speaker.ports bfd.UDP.receive bfd.UDP.socks bfd.reports.list bfd.reports.of
control.Ledger.noted control.Plane.failed
control.Plane.gave control.Plane.gaveIP control.Plane.lists control.Plane.peers control.Plane.refusals
control.Plane.routeWatchers cmd/vxswitchd.rowWatch.list cmd/vxswitchd.spoken.addresses node.prober.leaving node.prober.warned
control.Plane.targets control.Plane.watchers control.changes.at
control.changes.dirty control.changes.made control.delta.add control.delta.del control.floodChange.want control.floodList.list
control.floodList.shown control.owner.places control.pages.free control.pages.list control.peer.nums control.place.held
control.routeChange.now control.routeEntry.via control.segment.ports control.slots.list control.tally.more
control.segment.tunnels control.store.named control.store.owners control.store.routers
control.store.sorted control.tx.idle control.tx.late control.tx.refused
control.tx.segments control.tx.unused control.tx.vrfs
capture.Capture.on capture.File.ids
fdb.Table.portDest
bfd/vxlan.peers.byNum bfd/vxlan.peers.nums
l3.Gateway.vrfs l3.Gateway.listeners l3.Interface.addrs l3.VRF.held l3.VRF.interfaces l3.VRF.made l3.nextHops.byKey l3.nextHops.gone l3.nextHops.ill l3.route.paths l3.route.same
node.Node.down node.Node.kick node.Node.left node.Node.logged node.Node.own node.Node.provided node.Node.policies node.Node.portFilters node.Node.ports node.Node.roles node.Node.segments node.Node.tunnels node.Node.vrfs node.checker.claimed
node.prober.down node.prober.kick node.prober.probed node.prober.sessions node.probedTunnel.peers node.session.on
node.gate.shut node.gate.retired node.opened.ports node.opened.tunnels
node.segment.guards node.segment.macs node.segment.members node.segment.tunnels node.tunnel.sets node.tunnel.udpOn node.tunnel.under
node.wanted.policies node.wanted.ports node.wanted.segments node.wanted.tunnels node.wanted.vrfs
policy.Policy.counters policy.Policy.names policy.Policy.unused policy.addrClass.labels policy.addrs.services policy.addrs.sets
policy.asked.all policy.asked.list policy.asked.not policy.asked.notPortSets policy.asked.notPorts policy.asked.notSets policy.asked.portSets policy.asked.ports
policy.filling.nodes policy.filling.bits policy.filling.list policy.filling.pairs policy.identity.macs policy.lists.literal policy.lists.ports
policy.lists.sets policy.members.byKey policy.members.classes policy.members.free policy.members.fresh policy.pool.array
policy.pool.known policy.portList.is policy.portList.not policy.ports.page policy.ports.sets policy.ports.starts
policy.ruleset.actions policy.ruleset.after policy.ruleset.array policy.ruleset.base policy.ruleset.counters policy.ruleset.dmac
policy.ruleset.ether policy.ruleset.logged policy.ruleset.names policy.ruleset.protocols policy.ruleset.smac policy.side.free
policy.side.less policy.side.need policy.side.needless policy.side.needs policy.side.nonIP policy.side.none policy.side.portFree
policy.side.portless policy.side.ports policy.side.scratch policy.side.some
port.glue.links port.glue.watches port.Device.queues port.Packet.queues port/porttest.Faulty.in
switch.Flow.carried switch.Switch.byPort switch.Switch.failed switch.Switch.fibs switch.Switch.judges switch.Switch.list switch.Switch.ports switch.Switch.vsis
switch.Switch.workers switch.VSI.members switch.VSI.tallies switch.port.tallies switch.numbers.free switch.port.circuits switch.port.members switch.port.matching
switch.role.shared switch.port.readers switch.port.workers switch.view.byPort switch.view.members switch.view.tunnels
internal/datagrams.Sets.sets internal/datagrams.Sets.settings underlay.base.ranges underlay.base.readers
underlay.Portable.joined underlay.Portable.senders underlay.Portable.socks underlay.portableSet.socks
underlay.base.senders underlay.errWatch.socks underlay.groups.socks
underlay.txPorts.kinds underlay.txPorts.ports underlay.txSocks.socks underlay/afpacket.Underlay.groups
underlay/afpacket.Underlay.queues underlay/afpacket.Underlay.senders underlay/afpacket.rules.groups internal/filter.program.fails
internal/filter.program.ops
underlay/memory.Network.groups underlay/memory.Network.links underlay/memory.Network.members
underlay/memory.Network.special underlay/memory.Underlay.senders underlay/memory.Underlay.sets
underlay/memory.Underlay.users
snoop.state.always
vtep.VTEP.networks vtep.VTEP.settings vtep.VTEP.down vtep.network.allowed vtep.network.flooded vtep.floodList.given
flannel.Mapper.links flannel.Memory.changed flannel.Memory.keys flannel.Memory.log
evpn.portState.dests evpn.portState.vnis evpn.rows.hosts evpn.rows.routes evpn.seen.connected evpn.seen.members evpn.seen.ports evpn/internal/bgp.BGP.listeners evpn/internal/bgp.BGP.peers evpn/internal/bgp.out.queues
evpn/internal/table.Table.byL3VNI evpn/internal/table.Table.configured evpn/internal/table.Table.given evpn/internal/table.Table.imports evpn/internal/table.Table.locals evpn/internal/table.Table.numbers evpn/internal/table.Table.tunnels evpn/internal/table.configured.addrs evpn/internal/table.configured.ports
evpn/internal/table.Table.own evpn/internal/table.Table.segments evpn/internal/table.Table.vrfs evpn/internal/table.Table.vrfsOf evpn/internal/table.host.fixed
evpn/internal/table.Table.homed evpn/internal/table.Table.ports evpn/internal/table.homed.forward evpn/internal/table.homed.roles
evpn/internal/table.nothing.told evpn/internal/table.vrf.networks evpn/internal/table.vrf.own
offload.Offload.vteps vtep.floodList.groups vtep.floodList.hops vtep.floodList.macs vtep.floodList.no vtep.floodList.single vtep.floodList.to vtep.hop.group
`

// fixed is what does not grow with what arrives: counters by name, scratch of a worker or a batch,
// signals, one thing for each worker, or for each number there is, and the parser's, whose file is bounded.
const fixed = `
calico.Plane.vxlan calico.filter.ports calico.running.done calico/internal/model.Store.changed calico/internal/model.Store.left calico/internal/resource.rawBlock.Allocations calico/internal/resource.rawBlock.Attributes
calico/internal/resource.rawConfiguration.Spec calico/internal/resource.rawFilter.Spec calico/internal/resource.rawOperation.PrependASPath calico/internal/resource.rawRule.ASPathPrefix calico/internal/resource.rawRule.Communities calico/internal/resource.rawRule.Operations calico/internal/resource.rawNode.Spec calico/internal/resource.rawPeer.Spec
calico/internal/resource.rawPool.Spec calico/internal/selector.compare.values
calico/internal/resource.rawAccounts.Names calico/internal/resource.rawEntity.Nets calico/internal/resource.rawEntity.NotNets calico/internal/resource.rawEntity.NotPorts calico/internal/resource.rawEntity.Ports calico/internal/resource.rawHost.Spec calico/internal/resource.rawPolicy.Spec calico/internal/resource.rawProfile.Spec calico/internal/resource.rawSet.Spec calico/internal/resource.rawWorkload.Spec
bfd.Speaker.discarded bfd.Speaker.done bfd.Speaker.kick bfd.UDP.done bfd.reports.kick bfd.session.discarded bfd.session.left
bfd.udpReceiver.control bfd.udpReceiver.from bfd.udpReceiver.iov bfd.udpReceiver.ms bfd.udpReceiver.msgs bfd.udpReceiver.payload
arp.Table.outcomes arp.shared.counts snoop.state.counts snoop.state.of snoop.state.on snoop.state.known
capture.File.done capture.portWriter.parts capture.ring.wake capture.underlaySender.parts
control.Plane.reserved cmd/vxswitchd.differ.list cmd/vxswitchd.gate.shut cmd/vxswitchd.rowWatch.lost cmd/vxswitchd.signals.reload cmd/vxswitchd.signals.stats
fdb.Gens.ports
evpn.Speaker.malformed evpn/internal/bgp.peer.change evpn/internal/bgp.peer.moved evpn/internal/unnumbered.Link.poke evpn/internal/unnumbered.events.wake evpn/internal/bgp.peer.left evpn/internal/bgp.queue.wake evpn/internal/bgp.session.done
evpn/internal/table.Table.left
flannel.Mapper.refused flannel.Plane.ready flannel.follower.ended flannel.follower.relist flannel.follower.renewed flannel.networkJSON.IPv6Network
flannel.networkJSON.IPv6SubnetMax flannel.networkJSON.IPv6SubnetMin flannel.networkJSON.Network flannel.networkJSON.SubnetMax flannel.networkJSON.SubnetMin
frame.arena.frames frame.arena.outer frame.spare.free
internal/gso.Joiner.parts internal/icmperr.PathMTU.count
setting/conf.Report.errs setting/conf.Report.names setting/conf.Report.told setting/conf.Report.renamed setting/conf.Report.wrong
setting/conf.node.list setting/conf.shape.fields setting/conf.shape.byKey
policy.Guard.drops policy.Policy.waits policy.counts.events policy.counts.rules internal/perworker.Set.list
internal/perworker.Table.pages internal/perworker.page.of
policy.ruleset.limits
port.Buffered.done port.Buffered.drops port.Packet.drops port.deviceWriter.out port.transmitter.parts
port/porttest.faultyReader.ps
switch.Events.ready switch.Switch.closing switch.Switch.done switch.Switch.kick switch.egress.out
switch.epoch.left switch.injected.taken switch.ledger.live switch.ledger.past switch.adapter.of
switch.adapter.out switch.adapter.pieces switch.port.tx switch.worker.done switch.worker.egress
offload.Offload.done offload.Offload.held offload.Offload.macs offload.Offload.wake offload.devices.with offload.news.gone offload.round.places offload.round.sendings offload.routes.changed offload.routes.used
offload/internal/datapath.Datapath.epochs offload/internal/datapath.Datapath.mapped offload/internal/datapath.Datapath.slots offload/internal/datapath.paths.bySlot
switch.port.carried switch.worker.recent switch.worker.last switch.worker.rx switch.worker.staged switch.worker.vsis
internal/datagrams.Cursor.parts underlay.life.done
underlay.single.iov underlay.single.msgs underlay.single.who underlay.portableReader.buf underlay.portableReader.from
underlay.portableReader.msgs underlay.portableSender.addrs underlay.portableSender.msgs underlay.portableSender.socks
underlay.portableSender.to underlay.portableSender.who underlay.reader.ctl underlay.reader.iov underlay.reader.names underlay.sender.ctl
underlay.sender.names underlay.sender.next underlay.sender.used underlay.sender.at underlay/afpacket.hops.kick underlay/afpacket.outbox.heads
underlay/afpacket.reader.heads underlay/afpacket.reader.iov underlay/memory.sender.seg
vtep.VTEP.lost vtep.outbox.ds vtep.outbox.owner vtep.outbox.span vtep.wrapped.parts vtep.writer.pieces
vtep.writer.scratch vtep.writer.groups vtep.writer.runs vtep.writer.to
ovsdb/internal/server.Server.changed ovsdb/internal/server.Server.listeners ovsdb/internal/server.session.room ovsdb/internal/store.Database.order ovsdb/internal/store.Database.tables ovsdb/internal/store.Schema.tables ovsdb/internal/store.base.enum ovsdb/internal/store.schemaJSON.Tables ovsdb/internal/store.tableSchema.byName ovsdb/internal/store.tableSchema.columns ovsdb/internal/store.tableSchema.indexes
`
