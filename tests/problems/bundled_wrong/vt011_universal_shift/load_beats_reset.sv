// Wrong: a load wins over the reset.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic [1:0] op,
  input  logic       serial_in,
  input  logic [7:0] data,
  output logic [7:0] q,
  output logic       serial_out
);

  always_ff @(posedge clk) begin
    if (reset && op != 2'd3)
      q <= 8'd0;
    else
      case (op)
        2'd1: q <= {serial_in, q[7:1]};
        2'd2: q <= {q[6:0], serial_in};
        2'd3: q <= data;
        default: q <= q;
      endcase
  end

  assign serial_out = (op == 2'd1) ? q[0] : (op == 2'd2) ? q[7] : 1'b0;

endmodule
