// Right: a tree of small adders.
module TopModule (
  input  logic [11:0] data,
  input  logic [3:0]  threshold,
  output logic [3:0]  count,
  output logic        above,
  output logic        exact
);

  function automatic [1:0] ones3(input [2:0] bits);
    ones3 = {(bits[0] & bits[1]) | (bits[0] & bits[2]) | (bits[1] & bits[2]), ^bits};
  endfunction

  wire [2:0] low  = {1'b0, ones3(data[2:0])} + {1'b0, ones3(data[5:3])};
  wire [2:0] high = {1'b0, ones3(data[8:6])} + {1'b0, ones3(data[11:9])};

  assign count = {1'b0, low} + {1'b0, high};
  assign exact = ~|(count ^ threshold);
  assign above = ~exact & ~(count < threshold);

endmodule
