package vt_names; localparam vt_first = 4; endpackage
