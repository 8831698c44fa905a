// Wrong: a value is seen only in the cycle after the write.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       we,
  input  logic [2:0] waddr,
  input  logic [7:0] wdata,
  input  logic [2:0] raddr_a,
  input  logic [2:0] raddr_b,
  output logic [7:0] rdata_a,
  output logic [7:0] rdata_b
);

  logic [7:0] regs [0:7];
  wire        write = we && !reset;
  integer     i;

  always_ff @(posedge clk) begin
    if (reset)
      for (i = 0; i < 8; i = i + 1) regs[i] <= 8'd0;
    else if (we)
      regs[waddr] <= wdata;
  end

  assign rdata_a = (raddr_a == 3'd0) ? 8'd0
                 : regs[raddr_a];
  assign rdata_b = (raddr_b == 3'd0) ? 8'd0
                 : regs[raddr_b];

endmodule
