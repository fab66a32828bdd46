"""One small fault for each rule, and the test that falls when it is made."""
