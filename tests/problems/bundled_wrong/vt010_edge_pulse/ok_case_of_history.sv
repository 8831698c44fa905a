// Right: a case over the last two samples.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       in,
  input  logic [1:0] mode,
  output logic       pulse
);

  reg last;

  always @(posedge clk) begin
    case ({last, in})
      2'b01: pulse <= mode[0];
      2'b10: pulse <= mode[1];
      default: pulse <= 1'b0;
    endcase
    if (reset) pulse <= 1'b0;
    last <= in;
  end

endmodule
