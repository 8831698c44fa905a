// Right: a window over the last bits.
module TopModule (
  input  logic       clk,
  input  logic       areset,
  input  logic       valid,
  input  logic       bit_in,
  output logic       found,
  output logic [3:0] hits
);

  reg  [2:0] window;
  wire [3:0] seen = {window, bit_in};
  wire       match = valid & (seen == 4'b1101);

  always @(posedge clk, posedge areset)
    if (areset) begin
      window <= 3'd0;
      hits <= 4'd0;
      found <= 1'b0;
    end else begin
      found <= match;
      hits <= hits + {3'd0, match};
      if (valid) window <= seen[2:0];
    end

endmodule
