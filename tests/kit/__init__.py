"""What tests of several packages share: `operations` builds frames and operations, `workspaces` builds workspaces."""
