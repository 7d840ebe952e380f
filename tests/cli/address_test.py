"""Two servers of one folder, each on a machine of its own, of which one loses its power; its address is moved to the other (docs/scale.md), and so are its
clients, by versions 3, 4.1 and 4.2, over TCP and RPC-over-RDMA, with what they copy, write, have open and have locked."""
import os

import harness
import moved_address
import network
from moved_address import ADDRESS, ALL_GATEWAYS, NEW_OWNER, Pair, run_documented, url


class Address(Pair):
    def setUp(self):
        super().setUp()
        self.data = os.path.join(self.work, "served")
        os.mkdir(self.data)

    def export(self, _name):
        return f"/data={self.data},no_root_squash"

    def test_clients_of_a_machine_that_lost_its_power_go_on_where_its_address_goes(self):
        self.try_a_loss()

    def test_a_gateway_listens_at_an_address_that_is_not_there_yet_if_the_system_lets_it(self):
        machine = network.Machine("early", 13)
        self.addCleanup(machine.end)
        arguments = ("serve", "--export", self.export("early"), "--state", os.path.join(self.work, "early"), "--listen", ADDRESS)
        refused = machine.stag(*arguments)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"cannot listen at {ADDRESS}:20049 (--rdma-port): the address is not one of this machine", refused.stderr)
        run_documented(ALL_GATEWAYS, machine)
        server = harness.Server([], None, arguments[1:], ports=(), before=machine.enter)
        self.addCleanup(server.end)
        run_documented(NEW_OWNER, machine)
        for proto in ("rdma", "tcp"):
            self.good("ls", url("", proto=proto))


if __name__ == "__main__":
    network.isolate(harness.main)
